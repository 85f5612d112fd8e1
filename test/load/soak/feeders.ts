import { CLIENT_PATHS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { setTimeout as pause } from 'node:timers/promises'
import { textIn } from '../wire-line.ts'
import type { WireLine } from '../wire-line.ts'
import type { Expected, Ledger } from './ledger.ts'
import { CLIENT_TOKEN } from './server-under-test.ts'
import type { ServerUnderTest } from './server-under-test.ts'

const HOLES = 15_000
const OPEN_MAX = 200

export interface FeederTotals {
  /** Responses to many large jobs at once: how many were accepted, and how many refused with 503. */
  taken: number
  refused: number
  broken: number
  cancelled: number
}

/** Clients of every kind. Each starts jobs for as long as `isOn`, and passes acknowledged jobs to the ledger. */
export class Feeders {
  readonly #server: ServerUnderTest
  readonly #line: WireLine
  readonly #ledger: Ledger
  readonly totals: FeederTotals = { taken: 0, refused: 0, broken: 0, cancelled: 0 }
  /** Responses that no client should get. */
  readonly complaints: string[] = []
  isOn = true
  #next = 0
  #open = 0

  constructor(server: ServerUnderTest, line: WireLine, ledger: Ledger) {
    this.#server = server
    this.#line = line
    this.#ledger = ledger
  }

  async run(): Promise<void> {
    await Promise.all([
      this.#every(50, () => this.#insist({})),
      this.#every(1_000, () => this.#insist(large(900_000))),
      this.#every(700, () => this.#insist({ holes: Array.from({ length: HOLES }, () => ({})) })),
      this.#every(500, () => this.#insist({ echo: '€'.repeat(30_000) })),
      this.#every(15_000, () => this.#burst(80)),
      this.#every(500, () => this.#cancelOne()),
      this.#every(200, () => this.#breakOne()),
    ])
  }

  async #every(ms: number, work: () => Promise<void>): Promise<void> {
    const under = new Set<Promise<void>>()
    while (this.isOn) {
      if (this.#open < OPEN_MAX) {
        this.#open += 1
        const one = work().finally(() => {
          this.#open -= 1
          under.delete(one)
        })
        under.add(one)
      }
      await pause(ms)
    }
    await Promise.all(under)
  }

  /** Retries until it is accepted. */
  async #insist(data: JsonObject): Promise<void> {
    const { body, expected } = this.#jobOf(data)
    const answer = await this.#line.insist('start', { method: 'POST', path: CLIENT_PATHS.jobs, body })
    const id = textIn(answer?.body, 'job_id')
    if (id !== '') this.#ledger.acknowledge(id, expected)
  }

  /** Many large ones at once, each sent only once. */
  async #burst(count: number): Promise<void> {
    const one = async (): Promise<void> => {
      const { body, expected } = this.#jobOf(large(900_000))
      const answer = await this.#send(JSON.stringify(body))
      if (answer === undefined) return
      if (answer.status === 202) {
        this.totals.taken += 1
        this.#ledger.acknowledge(answer.jobId, expected)
      } else if (answer.status === 503 && answer.hasRetryAfter) this.totals.refused += 1
      else this.complaints.push(`One of many large jobs got ${answer.status}.`)
    }
    await Promise.all(Array.from({ length: count }, one))
  }

  async #cancelOne(): Promise<void> {
    const { body, expected } = this.#jobOf({}, 'soak_forever')
    const answer = await this.#line.insist('start', { method: 'POST', path: CLIENT_PATHS.jobs, body })
    const id = textIn(answer?.body, 'job_id')
    if (id === '') return
    this.#ledger.acknowledge(id, { ...expected, end: 'cancelled' })
    await pause(Math.random() * 2_000)
    const path = `${CLIENT_PATHS.job(id)}/cancel`
    // The reply may be lost with the server; the job is still cancelled, and the next attempt reports it.
    while (this.#ledger.open.has(id)) {
      const done = await fetch(`${this.#server.url}${path}`, {
        method: 'POST',
        headers: { 'x-client-token': CLIENT_TOKEN },
      }).catch(() => undefined)
      if (done !== undefined && done.status < 500) break
      await pause(200)
    }
    this.totals.cancelled += 1
  }

  /** An invalid request has to be refused with the right error. */
  async #breakOne(): Promise<void> {
    const [text, wanted] = BROKEN[this.totals.broken % BROKEN.length] ?? ['', 400]
    this.totals.broken += 1
    const answer = await this.#send(text)
    // A server that is killed or overloaded may not respond.
    if (answer === undefined || answer.status === 503 || answer.status === wanted) return
    this.complaints.push(`A body that deserves ${wanted} got ${answer.status}: ${text.slice(0, 40)}`)
  }

  #jobOf(data: JsonObject, blueprint = 'soak'): { readonly body: JsonObject; readonly expected: Expected } {
    this.#next += 1
    const number = this.#next
    const {
      texts = [],
      holes = [],
      echo = '',
    } = data as {
      readonly texts?: readonly string[]
      readonly holes?: readonly JsonObject[]
      readonly echo?: string
    }
    const chars = texts.reduce((sum, text) => sum + text.length, 0)
    return {
      body: { blueprint, initial_data: { ...data, number }, idempotency_key: `soak-${number}` },
      expected: { number, chars, holes: holes.length, echo, end: 'finished' },
    }
  }

  async #send(
    text: string,
  ): Promise<{ readonly status: number; readonly jobId: string; readonly hasRetryAfter: boolean } | undefined> {
    const wasUp = this.#server.isUp
    try {
      const answer = await fetch(`${this.#server.url}${CLIENT_PATHS.jobs}`, {
        method: 'POST',
        headers: { 'x-client-token': CLIENT_TOKEN, 'content-type': 'application/json' },
        body: text,
        signal: AbortSignal.timeout(60_000),
      })
      const { job_id: jobId = '' } = (await answer.json()) as { readonly job_id?: string }
      return { status: answer.status, jobId, hasRetryAfter: answer.headers.has('retry-after') }
    } catch (error) {
      // A refusal may close the connection while the rest of a large body is still being sent.
      const isLate = error instanceof Error && error.name === 'TimeoutError'
      if (wasUp && this.#server.isUp && isLate) this.complaints.push('A request was not answered within a minute.')
      return undefined
    }
  }
}

/** Strings are bounded too, so it takes several. */
function large(chars: number): JsonObject {
  return { texts: Array.from({ length: 4 }, (_, part) => String(part).repeat(chars / 4)) }
}

const job = (data: string): string => `{"blueprint":"soak","initial_data":${data}}`

/** Bodies, and the expected status of each. */
const BROKEN: readonly (readonly [text: string, status: number])[] = [
  ['{"blueprint":"soak"', 400],
  [job('[1,2'), 400],
  ['[]', 400],
  [job('{"texts":[]}').replace('soak', 'no-such-blueprint'), 404],
  [job(`{"holes":[${Array.from({ length: 300_000 }, () => '{}').join(',')}]}`), 422],
  [job(`{"deep":${'['.repeat(500)}${']'.repeat(500)}}`), 422],
  [job(`{"text":"${'x'.repeat(300_000)}"}`), 422],
  [job(`{"text":"${'x'.repeat(2_000_000)}"}`), 413],
]
