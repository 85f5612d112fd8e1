import { NO_DEEDS, countDeeds, deedOf, judge } from '@impresario/core'
import type {
  Clock,
  Deed,
  Deeds,
  JobEvent,
  Log,
  LeaseRef,
  Put,
  ReputationRules,
  Service,
  Standing,
  Storage,
  Stored,
  WorkerRecord,
} from '@impresario/core'
import type { LedService, Term } from '../service/leadership.ts'
import { Pump } from '../service/pump.ts'

export interface ReputationOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: Log
  readonly rules: ReputationRules
  /** News are gathered for so long: a worker that ends a thousand tasks in a second is still one write. */
  readonly flushMs: number
  /** How often the scores are computed. */
  readonly judgeMs: number
  /** A worker's record has another score. */
  readonly onScored: (worker: WorkerRecord) => void
}

/** With the default of five seconds this is at most 40 writes a second, however many workers there are. */
const WORKERS_PER_FLUSH = 200
const PAGE = 200
/** Between two pages, so that a large fleet does not load the storage all at once. */
const PAGE_PAUSE_MS = 1_000
/** Heartbeats write the worker's record too. More conflicts than this are not a matter of timing. */
const CONFLICTS_MAX = 5
/** A standing is forgotten when its worker has had no tasks for so long. */
const STANDING_MS = 30 * 86_400_000

/**
 * Keeps the standing of the workers.
 *
 * Every instance counts what becomes of the tasks whose results it takes, and writes the counts every few seconds; a crash
 * loses at most those seconds. One instance works the scores out from the counts. A score is written into the worker's
 * record beside what the worker said of itself, and leaves alone when the worker was seen: the dead stay dead.
 */
export class Reputation implements Service {
  readonly name = 'reputation'
  readonly #options: ReputationOptions
  readonly #pump: Pump
  readonly #news = new Map<string, Deeds>()
  #newsSince = 0
  /** The process that one instance runs for all. */
  readonly judge: LedService

  constructor(options: ReputationOptions) {
    this.#options = options
    const { clock, log, flushMs: idleMs } = options
    this.#pump = new Pump({ name: this.name, clock, log, idleMs, round: () => this.#round() })
    this.judge = new Judge(options, (id, change, guard) => this.#change(id, change, guard))
  }

  start(): Promise<void> {
    return this.#pump.start()
  }

  /** What was counted is written first. */
  async stop(): Promise<void> {
    await this.#pump.stop()
    await this.#flush(Number.POSITIVE_INFINITY)
  }

  tick(): Promise<{ readonly worked: number }> {
    return this.#pump.tick()
  }

  /** What an event that was applied says of a worker. */
  onEvent(event: JobEvent): void {
    if (event.type === 'taskEnded') {
      const deed = deedOf(event.status, event.error?.code)
      if (deed !== undefined) this.count(event.workerId, deed)
    } else if (event.type === 'taskExpired' && event.workerId !== undefined) {
      this.count(event.workerId, 'timedOut')
    }
  }

  count(workerId: string, deed: Deed): void {
    if (this.#news.size === 0) this.#newsSince = this.#options.clock.now()
    const deeds = this.#news.get(workerId) ?? NO_DEEDS
    this.#news.set(workerId, { ...deeds, [deed]: deeds[deed] + 1 })
  }

  async #round(): Promise<{ worked: number; nextInMs: number | undefined }> {
    if (this.#news.size === 0) return { worked: 0, nextInMs: undefined }
    const { clock, flushMs } = this.#options
    const leftMs = this.#newsSince + flushMs - clock.now()
    if (leftMs > 0) return { worked: 0, nextInMs: leftMs }
    this.#newsSince = clock.now()
    return { worked: await this.#flush(WORKERS_PER_FLUSH), nextInMs: flushMs }
  }

  /** Bad news first: it shall not wait behind the successes of ten thousand others. */
  async #flush(limit: number): Promise<number> {
    const all = [...this.#news]
    const isBad = ([, deeds]: readonly [string, Deeds]): boolean =>
      deeds.violated + deeds.permanent + deeds.timedOut > 0
    const ids = [...all.filter(isBad), ...all.filter((one) => !isBad(one))].slice(0, limit).map(([id]) => id)
    const { clock, rules, log } = this.#options
    let written = 0
    for (const id of ids) {
      const deeds = this.#news.get(id) ?? NO_DEEDS
      this.#news.delete(id)
      try {
        await this.#change(id, (known) => countDeeds(known, deeds, clock.now(), rules))
        written += 1
      } catch (error) {
        // Counted again with the next news. Should it have been written all the same, it counts twice: that is the smaller harm.
        this.#news.set(id, addDeeds(this.#news.get(id) ?? NO_DEEDS, deeds))
        log.warn('the standing of a worker could not be written', { worker_id: id, error: String(error) })
      }
    }
    return written
  }

  /** Changes a standing, and the score in the worker's record with it. False when the guard no longer holds. */
  async #change(
    id: string,
    change: (known: Standing | undefined) => Standing | undefined,
    guard?: LeaseRef,
  ): Promise<boolean> {
    const { storage, onScored } = this.#options
    for (let conflicts = 0; conflicts <= CONFLICTS_MAX; conflicts += 1) {
      const stored = await storage.read('standing', id)
      const worker = await storage.read('worker', id)
      const standing = change(stored?.value)
      if (standing === undefined) return true
      const scored = scoredWorker(worker, standing.score)
      const put: Put[] = [
        { kind: 'standing', id, value: standing, version: (stored?.version ?? 0) + 1, expiresMs: STANDING_MS },
      ]
      if (scored !== undefined) {
        const facets = { status: scored.value.status, name: scored.value.type }
        put.push({ kind: 'worker', id, value: scored.value, version: scored.version, facets })
      }
      if ((await storage.commit({ put, ...(guard === undefined ? {} : { guard }) })) === 'committed') {
        if (scored !== undefined) onScored(scored.value)
        return true
      }
    }
    if (guard !== undefined) return false
    throw new Error(`The record was changed by others ${CONFLICTS_MAX + 1} times in a row.`)
  }
}

/** Nothing but the score changes: the worker has not been seen. */
function scoredWorker(worker: Stored<WorkerRecord> | undefined, score: number): Stored<WorkerRecord> | undefined {
  if (worker === undefined || worker.value.reputation === score) return undefined
  return { value: { ...worker.value, reputation: score }, version: worker.version + 1 }
}

function addDeeds(a: Deeds, b: Deeds): Deeds {
  return {
    succeeded: a.succeeded + b.succeeded,
    failed: a.failed + b.failed,
    permanent: a.permanent + b.permanent,
    violated: a.violated + b.violated,
    timedOut: a.timedOut + b.timedOut,
  }
}

type Change = (
  id: string,
  change: (known: Standing | undefined) => Standing | undefined,
  guard: LeaseRef,
) => Promise<boolean>

/** Goes over all standings, a page at a time, and then rests until the next time. */
class Judge implements LedService {
  readonly name = 'reputation'
  readonly idleMs: number
  readonly #options: ReputationOptions
  readonly #change: Change
  /** When the present pass began, or the next one shall. */
  #passAt = 0
  #before: string | undefined

  constructor(options: ReputationOptions, change: Change) {
    this.#options = options
    this.#change = change
    this.idleMs = options.judgeMs
  }

  readonly isWanted = (): boolean => true

  readonly begin = async (): Promise<void> => {
    this.#passAt = this.#options.clock.now()
    this.#before = undefined
  }

  readonly round = async (term: Term): Promise<{ worked: number; nextInMs: number | undefined }> => {
    const { storage, clock, judgeMs } = this.#options
    const now = clock.now()
    if (now < this.#passAt) return { worked: 0, nextInMs: this.#passAt - now }
    const query = this.#before === undefined ? { limit: PAGE } : { limit: PAGE, before: this.#before }
    const page = await storage.list('standing', query)
    let worked = 0
    for (const { id, value } of page) {
      if (term.isOver()) return { worked, nextInMs: undefined }
      if (!isDue(value, now, judgeMs)) continue
      const isWritten = await this.#change(id, (known) => known && judge(known, now), term.guard)
      if (!isWritten) return { worked, nextInMs: PAGE_PAUSE_MS }
      worked += 1
    }
    this.#before = page.length < PAGE ? undefined : page.at(-1)?.id
    if (this.#before !== undefined) return { worked, nextInMs: PAGE_PAUSE_MS }
    this.#passAt = now + judgeMs
    return { worked, nextInMs: judgeMs }
  }
}

/**
 * With each change of leaders a pass begins, so a standing says itself when it was judged. One that would come out as it
 * is need not be written.
 */
function isDue(standing: Standing, now: number, judgeMs: number): boolean {
  const { newsAt = 0, judgedAt = 0 } = standing
  if (now - judgedAt < judgeMs / 2) return false
  const judged = judge(standing, now)
  return newsAt > judgedAt || judged.score !== standing.score || judged.tallies.length !== standing.tallies.length
}
