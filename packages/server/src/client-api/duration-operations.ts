import { setImmediate as nextTick } from 'node:timers/promises'
import type { EventListQuery, StoredEvent } from '@impresario/history'
import { HOUR_MS, ImpresarioError, LIMITS } from '@impresario/protocol'
import type { DurationsBody } from '@impresario/protocol'
import type * as schemas from '@impresario/protocol/schemas'
import type { Caller } from '../http/access.ts'
import type { HistoryParts } from './history-operations.ts'
import { ownerFilter } from './job-access.ts'
import { momentOf } from './job-query.ts'

const EVENTS = ['state_finished', 'job_finished', 'job_failed']
const PIECE = 1_000
const PIECE_BYTES_MAX = LIMITS.pagePieceBytes
const JOBS_MAX = 200
const STATES_MAX = 1_000

/** How long jobs and their stays in states took, of the last hour unless the query says more. */
export async function durations(
  { history, clock }: Pick<HistoryParts, 'history' | 'clock'>,
  caller: Caller,
  given: ReturnType<typeof schemas.durationQuery.parse>,
): Promise<DurationsBody> {
  const until = given.until === undefined ? clock.now() + 1 : momentOf('until', given.until)
  const since = given.since === undefined ? Math.max(0, until - HOUR_MS) : momentOf('since', given.since)
  if (since >= until) throw new ImpresarioError('INVALID_REQUEST', '"since" in the query must lie before "until".')
  const query = {
    ...ownerFilter(caller, given.owner),
    ...(given.blueprint === undefined ? {} : { blueprint: given.blueprint }),
    events: EVENTS,
    since,
    until,
  }
  const tally = new Tally(since, until, given.spans ?? 0)
  let before: EventListQuery['before']
  let seen = 0
  while (seen < LIMITS.durationEventsMax) {
    const limit = Math.min(PIECE, LIMITS.durationEventsMax - seen)
    const found = await history.list({
      ...query,
      limit,
      bytesMax: PIECE_BYTES_MAX,
      ...(before === undefined ? {} : { before }),
    })
    for (const event of found) tally.add(event)
    seen += found.length
    const last = found.at(-1)
    if (last === undefined || (found.length < limit && found.isCut !== true)) return tally.body(since, false)
    before = last
    // Other requests have their turn.
    await nextTick()
  }
  return tally.body(before?.at ?? since, true)
}

interface Spread {
  readonly count: number
  readonly p50_ms: number
  readonly p95_ms: number
  readonly max_ms: number
}

interface Ended {
  readonly blueprint: string
  readonly state: string
  failed: number
  readonly took: number[]
}

class Tally {
  readonly #since: number
  readonly #until: number
  readonly #jobs = new Map<string, Ended>()
  readonly #states = new Map<string, Ended>()
  readonly #spans: readonly Ended[]

  constructor(since: number, until: number, spans: number) {
    this.#since = since
    this.#until = until
    this.#spans = Array.from({ length: spans }, () => ({ blueprint: '', state: '', failed: 0, took: [] }))
  }

  add({ event, at, blueprint = '', state = '', durationMs = 0 }: StoredEvent): void {
    if (event === 'state_finished') {
      ended(this.#states, blueprint, state).took.push(durationMs)
      return
    }
    const length = (this.#until - this.#since) / this.#spans.length
    const places = [ended(this.#jobs, blueprint, ''), this.#spans[Math.floor((at - this.#since) / length)]]
    for (const place of places) {
      if (place === undefined) continue
      if (event === 'job_failed') place.failed += 1
      else place.took.push(durationMs)
    }
  }

  body(since: number, isPartial: boolean): DurationsBody {
    const length = (this.#until - this.#since) / this.#spans.length
    return {
      since: since / 1_000,
      until: this.#until / 1_000,
      is_partial: isPartial,
      blueprints: ranked(this.#jobs, JOBS_MAX).map(({ blueprint, failed, took }) => ({
        blueprint,
        failed,
        ...spreadOf(took),
      })),
      states: ranked(this.#states, STATES_MAX).map(({ blueprint, state, took }) => ({
        blueprint,
        state,
        ...spreadOf(took),
      })),
      spans: this.#spans.map(({ failed, took }, index) => {
        const { count, p50_ms: p50, p95_ms: p95 } = spreadOf(took)
        const isEmpty = count === 0
        return {
          timestamp: (this.#since + index * length) / 1_000,
          finished: count,
          failed,
          p50_ms: isEmpty ? null : p50,
          p95_ms: isEmpty ? null : p95,
        }
      }),
    }
  }
}

function ended(places: Map<string, Ended>, blueprint: string, state: string): Ended {
  const key = `${blueprint}\n${state}`
  const known = places.get(key)
  if (known !== undefined) return known
  const made: Ended = { blueprint, state, failed: 0, took: [] }
  places.set(key, made)
  return made
}

/** The most frequent first. */
function ranked(places: ReadonlyMap<string, Ended>, max: number): readonly Ended[] {
  const size = ({ took, failed }: Ended): number => took.length + failed
  return [...places.values()].toSorted((a, b) => size(b) - size(a)).slice(0, max)
}

/** By the nearest rank: each figure is one that was measured. */
function spreadOf(took: readonly number[]): Spread {
  const sorted = took.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
  return { count: sorted.length, p50_ms: at(0.5), p95_ms: at(0.95), max_ms: at(1) }
}
