import { setImmediate as nextTick } from 'node:timers/promises'
import { withSignature } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import type { Generation } from './generations.fixture.ts'
import { WORKER_TOKEN } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

export interface Speech {
  register(body: object): Promise<Answer>
  heartbeat(body?: object): Promise<Answer>
  poll(signal?: AbortSignal, path?: string): Promise<Answer>
  result(body: object): Promise<Answer>
  event(body: object): Promise<Answer>
}

/** The worker's requests, with the headers that its generation sends and no others. */
export function speak(app: () => TestServer, generation: Generation, token = WORKER_TOKEN): Speech {
  const { headers, worker, query } = generation
  const call = (method: string, path: string, body?: object, signal?: AbortSignal): Promise<Answer> =>
    app().call(method, `/_worker${path}`, {
      headers: { 'x-worker-token': token, ...headers },
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    })
  return {
    register: (body: object) => call('POST', '/workers/register', body),
    heartbeat: (body?: object) => call('PATCH', `/workers/${worker}`, body),
    poll: (signal?: AbortSignal, path = query) =>
      call('GET', `/workers/${worker}/tasks/next${path}`, undefined, signal),
    result: (body: object) => call('POST', '/tasks/result', body),
    event: (body: object) => call('POST', '/events', body),
  }
}

/** Mulberry32: the same decisions in every run. */
function chanceOf(seed: number): () => number {
  let state = seed
  return () => {
    state = Math.imul(state + 0x6d_2b_79_f5, 1)
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export const G4_TOKEN = 'a-token-of-g4-that-is-long-enough-for-anybody'

/** A worker that really signs, as its generation does. */
async function signed(generation: Generation, body: object, ignore: readonly string[] = []): Promise<object> {
  if (generation.name !== 'G4') return body
  const { security: _, ...message } = body as JsonObject
  const timestamp = Math.floor(Date.now() / 1_000)
  const unique = { ...message, timestamp, metadata: { nonce: Math.random().toString(36) } }
  return withSignature(unique, { id: generation.worker, secret: G4_TOKEN }, ignore)
}

/** Registers, beats, polls and works until it is told to stop; half of its polls die. */
export class SimulatedWorker {
  readonly accepted: string[] = []
  readonly #generation: Generation
  readonly #chance: () => number
  readonly #say: Speech
  #running: string[] = []

  constructor(app: () => TestServer, generation: Generation, seed: number) {
    this.#generation = generation
    this.#chance = chanceOf(seed)
    this.#say = speak(app, generation, generation.name === 'G4' ? G4_TOKEN : WORKER_TOKEN)
  }

  async run(isDone: () => boolean): Promise<void> {
    const { register } = this.#generation
    mustBeGood(await this.#say.register(await signed(this.#generation, register.body ?? {})))
    while (!isDone()) {
      await this.#beat()
      const task = await this.#poll()
      if (task?.status === 200) await this.#perform(task)
    }
  }

  async #beat(): Promise<void> {
    const { name, heartbeats } = this.#generation
    const [first] = heartbeats
    const load = this.#running.length
    const tasks = name === 'G0' ? { load } : { current_tasks: this.#running }
    const body = await signed(this.#generation, { ...first?.body, ...tasks })
    mustBeGood(await this.#say.heartbeat(body))
  }

  /** Gives up at any moment: before the request has left, while it is parked, or while the task is on its way. */
  async #poll(): Promise<Answer | undefined> {
    const abort = new AbortController()
    const poll = this.#say.poll(abort.signal, '?timeout=0.2').catch(() => undefined)
    if (this.#chance() < 0.5) {
      const ticks = Math.floor(this.#chance() * 12)
      for (let at = 0; at < ticks; at += 1) await nextTick()
      abort.abort()
    }
    return poll
  }

  async #perform({ body: { job_id, task_id } }: Answer): Promise<void> {
    const { resultBody, worker, progress } = this.#generation
    this.#running = [task_id]
    if (this.#chance() < 0.3 && this.#generation.progressOver === 'http') {
      await this.#say.event(progress({ job_id, task_id }, worker))
    }
    const status = this.#chance() < 0.5 ? 'success' : 'later'
    const body = await signed(
      this.#generation,
      resultBody({ job_id, task_id }, worker, { status, data: { by: worker } }),
    )
    const reply = await this.#say.result(body)
    this.#running = []
    mustBeGood(reply)
    if (String(reply.body['status']).includes('accepted')) this.accepted.push(job_id)
  }
}

function mustBeGood({ status, text }: Answer): void {
  if (status !== 200) throw new Error(`A worker was answered ${status}: ${text}`)
}
