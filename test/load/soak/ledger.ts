import { CLIENT_PATHS, isJsonObject } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { textIn } from '../wire-line.ts'
import type { WireLine } from '../wire-line.ts'

/** The data of a job, and the expected end. */
export interface Expected {
  readonly number: number
  readonly chars: number
  readonly holes: number
  readonly echo: string
  /** It may end like this. */
  readonly end: 'finished' | 'cancelled'
}

const WAIT_S = 10

/** Every acknowledged job, until its end was seen and verified. */
export class Ledger {
  readonly #line: WireLine
  /** By id. */
  readonly open = new Map<string, Expected>()
  acknowledged = 0
  right = 0
  readonly wrong: string[] = []
  /** How often a worker was told that its result counts, by the job's id. */
  readonly #counted = new Map<string, number>()

  constructor(line: WireLine) {
    this.#line = line
  }

  /** The server has acknowledged it. */
  acknowledge(id: string, expected: Expected): void {
    this.acknowledged += 1
    this.open.set(id, expected)
    void this.#follow(id, expected)
  }

  /** A result was accepted; only one can be per job. */
  count(id: string): void {
    const times = (this.#counted.get(id) ?? 0) + 1
    this.#counted.set(id, times)
    if (times > 1) this.wrong.push(`The result of job ${id} was accepted ${times} times.`)
  }

  async #follow(id: string, expected: Expected): Promise<void> {
    const path = `${CLIENT_PATHS.job(id)}?wait=${WAIT_S}&until=end&fields=status,state_history,error_code,error_message,trail`
    for (;;) {
      const answer = await this.#line.insist('follow', { method: 'GET', path, timeoutMs: (WAIT_S + 20) * 1_000 })
      if (answer === undefined) {
        if (!this.#line.isClosing) this.#judge(id, `Job ${id} was acknowledged and cannot be read.`)
        return
      }
      const status = textIn(answer.body, 'status')
      if (['finished', 'failed', 'cancelled', 'quarantined', 'error'].includes(status)) {
        this.#judge(id, problemOf(id, expected, status, answer.body))
        return
      }
    }
  }

  #judge(id: string, problem: string | undefined): void {
    this.open.delete(id)
    if (problem === undefined) this.right += 1
    else this.wrong.push(problem)
  }
}

function problemOf(id: string, expected: Expected, status: string, body: JsonObject): string | undefined {
  if (status !== expected.end) {
    return `Job ${id} is ${status}: ${textIn(body, 'error_code')} ${textIn(body, 'error_message').slice(0, 300)}`
  }
  if (endings(body) !== 1) return `Job ${id} ended ${endings(body)} times.`
  if (status === 'cancelled') return undefined
  const found = isJsonObject(body['state_history']) ? body['state_history'] : {}
  const { number, chars, holes, echo } = found
  const isRight =
    number === expected.number * 2 && chars === expected.chars && holes === expected.holes && echo === expected.echo
  return isRight
    ? undefined
    : `Job ${id} ended with ${JSON.stringify({ number, chars, holes })}, and another echo or not.`
}

function endings({ trail }: JsonObject): number {
  const events = Array.isArray(trail) ? trail.filter(isJsonObject) : []
  return events.filter((event) => ['job_finished', 'job_cancelled', 'job_failed'].includes(textIn(event, 'event')))
    .length
}
