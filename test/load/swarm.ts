/**
 * A process with many workers, each with the calls of a real one: registration, long polls, results, heartbeats. They
 * finish tasks at once, because this test is about the orchestrator.
 */
import { isJsonObject, LIMITS, WORKER_PATHS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { setTimeout as pause } from 'node:timers/promises'
import { textIn, WireLine } from './wire-line.ts'
import type { Mishaps } from './wire-line.ts'

export interface SwarmReport {
  readonly type: 'report'
  readonly cured: Mishaps
  readonly incurable: Mishaps
  readonly tasks: number
  readonly polls: number
  /** Results that came too late, because the task had been given to another worker. */
  readonly ignored: number
}

const { SWARM_URL = '', SWARM_CA = '', SWARM_TOKEN = '', SWARM_NAME = 'swarm', SWARM_SIZE = '0' } = process.env
/** As the SDK does it. */
const HEARTBEAT_MS = 15_000
const POLL_MS = LIMITS.longPollMs
const HANDS = 4
/** Workers that register at the same time: all at once would be another test. */
const DOOR = 25

const line = new WireLine(SWARM_URL, SWARM_CA, { 'x-worker-token': SWARM_TOKEN })
const totals = { tasks: 0, polls: 0, ignored: 0 }

function worked(task: JsonObject): JsonObject {
  const params = isJsonObject(task['params']) ? task['params'] : {}
  const value = Number(params['value'])
  return { value: task['type'] === 'double' ? value * 2 : value * Number(params['part']) }
}

class SwarmWorker {
  readonly #id: string
  readonly #headers: Readonly<Record<string, string>>
  #current: readonly string[] = []

  constructor(id: string) {
    this.#id = id
    this.#headers = { 'x-worker-id': id }
  }

  async register(): Promise<void> {
    const body = {
      worker_id: this.#id,
      worker_type: 'swarm',
      supported_skills: ['double', 'part'].map((name) => ({ name })),
      resources: { max_concurrent_tasks: HANDS },
    }
    await this.#call('register', { method: 'POST', path: WORKER_PATHS.register, body })
  }

  async live(): Promise<void> {
    await Promise.all([this.#beat(), this.#work()])
  }

  async #beat(): Promise<void> {
    await pause(Math.random() * HEARTBEAT_MS)
    while (!line.isClosing) {
      const body = { current_tasks: this.#current, status: this.#current.length === 0 ? 'idle' : 'busy' }
      await this.#call('heartbeat', { method: 'PATCH', path: WORKER_PATHS.worker(this.#id), body })
      await pause(HEARTBEAT_MS)
    }
  }

  async #work(): Promise<void> {
    const path = WORKER_PATHS.taskBatch(this.#id)
    const body = { limit: HANDS, timeout: POLL_MS / 1_000 }
    while (!line.isClosing) {
      const answer = await this.#call('poll', { method: 'POST', path, body, timeoutMs: POLL_MS + 5_000 })
      totals.polls += 1
      const tasks = answer?.body['tasks']
      if (Array.isArray(tasks) && tasks.length > 0) await this.#deliver(tasks.filter(isJsonObject))
    }
  }

  async #deliver(tasks: readonly JsonObject[]): Promise<void> {
    this.#current = tasks.map((task) => textIn(task, 'task_id'))
    const results = tasks.map((task) => ({
      job_id: textIn(task, 'job_id'),
      task_id: textIn(task, 'task_id'),
      status: 'success',
      data: worked(task),
    }))
    const body = { worker_id: this.#id, results }
    const answer = await this.#call('result', { method: 'POST', path: WORKER_PATHS.results, body })
    this.#current = []
    totals.tasks += tasks.length
    const replies = answer?.body['results']
    if (!Array.isArray(replies)) return
    totals.ignored += replies.filter((reply) => isJsonObject(reply) && reply['status'] !== 'accepted').length
  }

  #call(name: string, call: Parameters<WireLine['insist']>[1]): ReturnType<WireLine['insist']> {
    return line.insist(name, call, this.#headers)
  }
}

const workers = Array.from({ length: Number(SWARM_SIZE) }, (_, index) => new SwarmWorker(`${SWARM_NAME}-${index}`))

async function report(): Promise<void> {
  line.close()
  const message: SwarmReport = { type: 'report', cured: line.cured, incurable: line.incurable, ...totals }
  await new Promise((resolve) => process.send?.(message, resolve))
  process.exitCode = 0
  process.disconnect()
}

process.on('message', (message) => {
  if (message === 'end') void report().then(() => process.kill(process.pid, 'SIGKILL'))
})
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))

const waiting = [...workers]
const telling = setInterval(
  () => process.send?.({ type: 'progress', text: `${waiting.length} workers have yet to register` }),
  15_000,
)
await Promise.all(
  Array.from({ length: DOOR }, async () => {
    for (let worker = waiting.pop(); worker !== undefined; worker = waiting.pop()) {
      await worker.register()
      void worker.live()
    }
  }),
)
clearInterval(telling)
process.send?.({ type: 'ready' })
