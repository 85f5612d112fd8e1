import {
  ImpresarioError,
  type EventRequest,
  type HeartbeatReply,
  type HeartbeatRequest,
  type RegisterReply,
  type RegisterRequest,
  type ResultReply,
  type ResultRequest,
  type TaskBatchReply,
  type WireTask,
} from '@impresario/protocol'
import { expect, test } from 'vitest'
import { createWorker, type PollRequest, type WorkerTransport } from '../index.ts'
import { silentLog, taskOf } from '../orchestrator.fixture.ts'

/** An engine in the same process, seen from a worker: no sockets, only calls. */
class DirectTransport implements WorkerTransport {
  readonly name = 'here'
  readonly received: ResultRequest[] = []
  readonly events: EventRequest[] = []
  readonly polls: PollRequest[] = []
  registrations = 0
  closed = false
  readonly #tasks: WireTask[]
  readonly #wanted: number
  #known = false
  #done: () => void = () => undefined
  readonly done = new Promise<void>((resolve) => {
    this.#done = resolve
  })

  constructor(tasks: readonly WireTask[]) {
    this.#tasks = [...tasks]
    this.#wanted = tasks.length
  }

  async register(_request: RegisterRequest): Promise<RegisterReply> {
    this.registrations += 1
    this.#known = this.registrations > 1
    return { status: 'registered', version: '0.1.0', batch: { tasks_max: 500 } }
  }

  async heartbeat(_workerId: string, _request: HeartbeatRequest): Promise<HeartbeatReply> {
    return { status: 'ok' }
  }

  async poll(_workerId: string, request: PollRequest, signal: AbortSignal): Promise<TaskBatchReply> {
    if (!this.#known) throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found.')
    this.polls.push(request)
    if (this.#tasks.length > 0) return { tasks: this.#tasks.splice(0, request.limit) }
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve())
    })
    return { tasks: [] }
  }

  async results(_workerId: string, results: readonly ResultRequest[]): Promise<readonly ResultReply[]> {
    this.received.push(...results)
    if (this.received.length === this.#wanted) this.#done()
    return results.map(() => ({ status: 'accepted', transition: 'success_transition' }))
  }

  async event(event: EventRequest): Promise<void> {
    this.events.push(event)
  }

  async close(): Promise<void> {
    this.closed = true
  }
}

test('[E-07] the same worker runs on a transport without a network', async () => {
  const transport = new DirectTransport(Array.from({ length: 5_000 }, (_, n) => taskOf('double', { n })))
  const worker = createWorker({ transport, concurrency: 500, log: silentLog })
  worker.task('double', async ({ n }) => ({ n: Number(n) * 2 }))
  await worker.start()
  await transport.done
  await worker.stop()
  expect(transport.received.map((result) => result.data)).toEqual(
    Array.from({ length: 5_000 }, (_, n) => ({ n: n * 2 })),
  )
  expect(transport.polls.length).toBeLessThan(50)
  expect(transport.closed).toBe(true)
})

test('[E-07] an engine that refuses an unknown worker is registered with again', async () => {
  const transport = new DirectTransport([taskOf('t')])
  const worker = createWorker({ transport, log: silentLog }).task('t', () => undefined)
  await worker.start()
  await transport.done
  await worker.stop()
  expect(transport.registrations).toBe(2)
})

test('[E-07] a long row of tasks that never wait does not overflow the stack, also behind a limit', async () => {
  const transport = new DirectTransport(Array.from({ length: 20_000 }, () => taskOf('t')))
  const worker = createWorker({ transport, concurrency: 20_000, taskLimits: { t: 1 }, log: silentLog })
  worker.task('t', () => undefined)
  await worker.start()
  await transport.done
  await worker.stop()
  expect(transport.received).toHaveLength(20_000)
})
