import { isJsonObject, WORKER_PATHS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { textIn } from '../wire-line.ts'
import type { WireLine } from '../wire-line.ts'
import type { Ledger } from './ledger.ts'
import { WORKER_TOKEN } from './server-under-test.ts'
import type { ServerUnderTest } from './server-under-test.ts'

const POLL_S = 5
const BEAT_MS = 1_000
const HANDS = 4
const HOLES = Array.from({ length: 300_000 }, () => '{}').join(',')

/** How a bad worker may treat a task. In every case its lease ends, and another worker gets it. */
const VICES = ['dies', 'hangs up', 'talks rubbish', 'sends too much', 'does not read', 'answers slowly'] as const
type Vice = (typeof VICES)[number]

interface Answer {
  readonly status: number
  readonly body: JsonObject
}

export interface CrowdTotals {
  done: number
  late: number
  spoiled: number
}

/** Workers that do their tasks, and some that take tasks and do not. */
export class WorkerCrowd {
  readonly #server: ServerUnderTest
  readonly #line: WireLine
  readonly #ledger: Ledger
  readonly totals: CrowdTotals = { done: 0, late: 0, spoiled: 0 }
  readonly complaints: string[] = []
  isOn = true
  #lives = 0

  constructor(server: ServerUnderTest, line: WireLine, ledger: Ledger) {
    this.#server = server
    this.#line = line
    this.#ledger = ledger
  }

  async run(good: number, bad: number): Promise<void> {
    await Promise.all([
      ...Array.from({ length: good }, (_, index) => this.#honest(`good-${index}`)),
      ...Array.from({ length: bad }, (_, index) => this.#vicious(VICES[index % VICES.length] ?? 'dies')),
    ])
  }

  async #honest(id: string): Promise<void> {
    const current = new Set<string>()
    await this.#register(id, HANDS)
    await Promise.all([this.#beat(id, current), this.#work(id, current)])
  }

  async #register(id: string, hands: number): Promise<void> {
    const body = { worker_id: id, supported_skills: [{ name: 'measure' }], resources: { max_concurrent_tasks: hands } }
    await this.#line.insist('register', { method: 'POST', path: WORKER_PATHS.register, body })
  }

  async #beat(id: string, current: ReadonlySet<string>): Promise<void> {
    while (this.isOn) {
      const body = { current_tasks: [...current], status: current.size === 0 ? 'idle' : 'busy' }
      const answer = await this.#line.insist('heartbeat', { method: 'PATCH', path: WORKER_PATHS.worker(id), body })
      if (answer === undefined && this.isOn) await this.#register(id, HANDS)
      await pause(BEAT_MS)
    }
  }

  async #work(id: string, current: Set<string>): Promise<void> {
    const body = { limit: HANDS, timeout: POLL_S }
    while (this.isOn) {
      const call = { method: 'POST', path: WORKER_PATHS.taskBatch(id), body, timeoutMs: 40_000 } as const
      const answer = await this.#line.insist('poll', call, { 'x-worker-id': id })
      const tasks = answer?.body['tasks']
      if (!Array.isArray(tasks)) continue
      for (const task of tasks.filter(isJsonObject)) {
        current.add(textIn(task, 'task_id'))
        await pause(Math.random() * 20)
        await this.#report(id, task)
        current.delete(textIn(task, 'task_id'))
      }
    }
  }

  async #report(id: string, task: JsonObject): Promise<void> {
    const params = isJsonObject(task['params']) ? task['params'] : {}
    const number = Number(params['number'])
    const data = { ...params, number: number * 2 }
    const body = {
      job_id: textIn(task, 'job_id'),
      task_id: textIn(task, 'task_id'),
      worker_id: id,
      status: 'success',
      data,
    }
    const answer = await this.#line.insist('result', { method: 'POST', path: WORKER_PATHS.result, body })
    const status = textIn(answer?.body, 'status')
    if (status.includes('accepted')) {
      this.totals.done += 1
      this.#ledger.count(textIn(task, 'job_id'))
    } else this.totals.late += 1
  }

  async #vicious(vice: Vice): Promise<void> {
    while (this.isOn) {
      this.#lives += 1
      const id = `bad-${this.#lives}`
      const registered = await this.#post(WORKER_PATHS.register, {
        worker_id: id,
        supported_skills: [{ name: 'measure' }],
        resources: { max_concurrent_tasks: 1 },
      })
      if (registered?.status === 200) await this.#misbehave(id, vice)
      // Good workers must be the large majority: a task that is dropped ten times is given up.
      await pause(6_000 + Math.random() * 6_000)
    }
  }

  async #misbehave(id: string, vice: Vice): Promise<void> {
    if (vice === 'does not read') return this.#pollUnread(id)
    const taken = await this.#post(WORKER_PATHS.taskBatch(id), { limit: 1, timeout: 3 }, vice === 'hangs up')
    const [task] = Array.isArray(taken?.body['tasks']) ? taken.body['tasks'].filter(isJsonObject) : []
    if (task === undefined) return
    this.totals.spoiled += 1
    const named = { job_id: textIn(task, 'job_id'), task_id: textIn(task, 'task_id'), worker_id: id }
    if (vice === 'talks rubbish') {
      await this.#mustRefuse('{"task_id": ')
      await this.#mustRefuse(JSON.stringify({ ...named, task_id: 'nobody-knows-this-one', status: 'success' }))
      await this.#mustRefuse(JSON.stringify([named]))
    } else if (vice === 'sends too much') {
      await this.#mustRefuse(JSON.stringify({ ...named, status: 'success', data: { text: 'x'.repeat(1_200_000) } }))
      const { job_id: jobId, task_id: taskId } = named
      await this.#mustRefuse(`{"job_id":"${jobId}","task_id":"${taskId}","data":{"holes":[${HOLES}]}}`)
    } else if (vice === 'answers slowly') await this.#reportSlowly(JSON.stringify({ ...named, status: 'success' }))
  }

  /** The lease has ended long before the end of the body. */
  async #reportSlowly(text: string): Promise<void> {
    const socket = this.#socket(
      `POST ${WORKER_PATHS.result} HTTP/1.1\r\nhost: x\r\nx-worker-token: ${WORKER_TOKEN}\r\n` +
        `content-type: application/json\r\ncontent-length: ${text.length + 100}\r\n\r\n`,
    )
    for (let at = 0; at < text.length && this.isOn && !socket.destroyed; at += 20) {
      socket.write(text.slice(at, at + 20))
      await pause(500)
    }
    socket.destroy()
  }

  async #pollUnread(id: string): Promise<void> {
    const body = JSON.stringify({ limit: 1, timeout: 3 })
    const socket = this.#socket(
      `POST ${WORKER_PATHS.taskBatch(id)} HTTP/1.1\r\nhost: x\r\nx-worker-token: ${WORKER_TOKEN}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    socket.pause()
    await pause(5_000)
    socket.destroy()
  }

  #socket(head: string): ReturnType<typeof connect> {
    const { hostname, port } = new URL(this.#server.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    socket.write(head)
    return socket
  }

  async #mustRefuse(text: string): Promise<void> {
    const answer = await this.#send(WORKER_PATHS.result, text)
    if (answer === undefined || (answer.status >= 400 && answer.status < 500) || answer.status === 503) return
    if (textIn(answer.body, 'status').includes('ignored')) return
    this.complaints.push(
      `A result that is none got ${answer.status} ${JSON.stringify(answer.body).slice(0, 100)}: ${text.slice(-60)}`,
    )
  }

  #post(path: string, body: JsonObject, isCut = false): Promise<Answer | undefined> {
    return this.#send(
      path,
      JSON.stringify(body),
      isCut ? AbortSignal.timeout(Math.round(500 + Math.random() * 2_000)) : undefined,
    )
  }

  async #send(
    path: string,
    text: string,
    signal: AbortSignal = AbortSignal.timeout(60_000),
  ): Promise<Answer | undefined> {
    try {
      const answer = await fetch(`${this.#server.url}${path}`, {
        method: 'POST',
        headers: { 'x-worker-token': WORKER_TOKEN, 'content-type': 'application/json' },
        body: text,
        signal,
      })
      const body: unknown = await answer.json()
      return { status: answer.status, body: isJsonObject(body) ? body : {} }
    } catch {
      return undefined
    }
  }
}
