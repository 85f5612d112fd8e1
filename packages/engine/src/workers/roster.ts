import { changedFields, mergeHeartbeat } from '@impresario/core'
import type { Clock, Log, Put, Storage, WorkerPatch, WorkerRecord } from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { Dispatcher } from './dispatcher.ts'

/** Something that happened to a worker, and what its record says after it. */
export interface WorkerMoment {
  readonly at: number
  readonly event: 'registered' | 'status_update' | 'removed' | 'reputation'
  readonly worker: WorkerRecord
  /** Of an update: what is new. */
  readonly changed?: readonly (keyof WorkerRecord)[]
}

export interface RosterOptions {
  readonly storage: Storage
  readonly dispatcher: Dispatcher
  readonly clock: Clock
  readonly log: Log
  /** What the records of all workers may take of the memory. */
  readonly bytesMax: number
  /** A worker of which nothing is written down for so long counts as silent. */
  readonly silentMs: number
  readonly onMoment?: ((moment: WorkerMoment) => void) | undefined
}

/** A silent worker is removed within minutes. */
const FULL_S = 60

/** What a log line shows of a worker's skills. */
const SHOWN_SKILLS = 20

/** Heartbeats of one worker are seconds apart; more conflicts than this are not a matter of timing. */
const SAVES_MAX = 5

/**
 * A sign of life that says nothing new is written down only when the one that is written is as old as this part of the time
 * after which a worker counts as silent. Most heartbeats are such: written each time, those of ten thousand workers are 700
 * commits a second.
 */
const SEEN_SHARE = 1 / 3
/** Those that are to be written are written together, so often at most. */
const SEEN_TOGETHER_MS = 1_000

/** Who the workers are: their records, from what they say when they register and with every sign of life. */
export class Roster {
  readonly #options: RosterOptions
  /** Workers whose last sign of life is to be written. */
  readonly #unwritten = new Set<string>()
  #writtenAt = Number.NEGATIVE_INFINITY

  constructor(options: RosterOptions) {
    this.#options = options
  }

  /** Durable when this resolves. */
  async register(worker: WorkerRecord): Promise<WorkerRecord> {
    const { storage, dispatcher, clock, log, onMoment } = this.#options
    if (dispatcher.worker(worker.id) === undefined) this.#mustHaveRoom()
    const earned = (await storage.read('standing', worker.id))?.value.score
    const record = await this.#save(worker.id, true, (known) => {
      // What it has earned outlasts its record.
      return { ...worker, reputation: earned ?? known?.reputation ?? worker.reputation }
    })
    if (record === undefined) return worker
    dispatcher.introduce(record)
    onMoment?.({ at: clock.now(), event: 'registered', worker: record })
    await storage.sync()
    log.info('worker registered', { worker_id: worker.id, skills: worker.skills.slice(0, SHOWN_SKILLS) })
    return record
  }

  #mustHaveRoom(): void {
    const { dispatcher, bytesMax } = this.#options
    const details = { retry_after_s: FULL_S }
    if (dispatcher.workerCount >= LIMITS.workersMax) {
      throw new ImpresarioError('TOO_MANY_REQUESTS', `There are ${LIMITS.workersMax} workers already.`, { details })
    }
    if (dispatcher.workerBytes < bytesMax) return
    const message = 'What the workers that are here say of themselves takes up all the memory there is for it.'
    throw new ImpresarioError('TOO_MANY_REQUESTS', message, { details })
  }

  /** A sign of life, and what the worker says with it. Also gives when it was heard of before. */
  async hear(
    workerId: string,
    patch: WorkerPatch | undefined,
  ): Promise<{ readonly worker: WorkerRecord; readonly heardBefore: number }> {
    const { clock, dispatcher, onMoment } = this.#options
    let before: WorkerRecord | undefined
    let changed: readonly (keyof WorkerRecord)[] = []
    const change = (known: WorkerRecord | undefined): WorkerRecord | undefined => {
      before = known
      const heard = known && mergeHeartbeat(known, patch ?? {}, clock.now())
      changed = known === undefined || heard === undefined || patch === undefined ? [] : changedFields(known, heard)
      return heard
    }
    const worker = await this.#save(workerId, patch !== undefined, change, () => changed.length === 0)
    if (worker === undefined || before === undefined) {
      throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found', { details: { worker_id: workerId } })
    }
    // What was heard here since it was last written down.
    const heardBefore = Math.max(before.seenAt, dispatcher.worker(workerId)?.seenAt ?? before.seenAt)
    if (worker.status === before.status) dispatcher.put(worker)
    else dispatcher.introduce(worker)
    if (changed.length > 0) onMoment?.({ at: clock.now(), event: 'status_update', worker, changed })
    else if (worker.seenAt - before.seenAt >= this.#options.silentMs * SEEN_SHARE) await this.#noteSeen(workerId)
    return { worker, heardBefore }
  }

  /**
   * Without a timer: who is left over is written with the next heartbeat of any worker, its own at the latest. So what is
   * written is never older than the silence that counts, as long as three heartbeats fit into that.
   */
  async #noteSeen(workerId: string): Promise<void> {
    const { clock, log } = this.#options
    this.#unwritten.add(workerId)
    const now = clock.now()
    if (now - this.#writtenAt < SEEN_TOGETHER_MS) return
    this.#writtenAt = now
    const ids = [...this.#unwritten]
    this.#unwritten.clear()
    // All at once: the storage writes them together.
    const outcomes = await Promise.allSettled(ids.map((id) => this.#writeSeen(id)))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) {
      log.warn('signs of life were not written; the next ones will be', { error: String(failed.reason) })
    }
  }

  async #writeSeen(id: string): Promise<void> {
    const heardAt = this.#options.dispatcher.worker(id)?.seenAt ?? 0
    const isWritten = (stored: WorkerRecord): boolean => stored.seenAt >= heardAt
    await this.#save(id, false, (known) => known && { ...known, seenAt: Math.max(known.seenAt, heardAt) }, isWritten)
  }

  /**
   * Changes a worker's record from what is stored, not from what is remembered: another instance may have heard more.
   * `isKnown`: what is stored says enough, and nothing is written.
   */
  async #save(
    id: string,
    isNews: boolean,
    change: (known: WorkerRecord | undefined) => WorkerRecord | undefined,
    isKnown: (stored: WorkerRecord, changed: WorkerRecord) => boolean = () => false,
  ): Promise<WorkerRecord | undefined> {
    const { storage, log } = this.#options
    for (let conflicts = 0; ; conflicts += 1) {
      const stored = await storage.read('worker', id)
      const value = change(stored?.value)
      if (value === undefined || (stored !== undefined && isKnown(stored.value, value))) return value
      if (isNews) mustBeSmall(value)
      const facets = { status: value.status, name: value.type }
      const put: Put = { kind: 'worker', id, value, version: (stored?.version ?? 0) + 1, facets }
      if ((await storage.commit({ put: [put] })) === 'committed') return value
      if (conflicts < SAVES_MAX) continue
      log.warn('a worker record is contended and was not written', { worker_id: id })
      return value
    }
  }
}

function mustBeSmall(worker: WorkerRecord): void {
  if (JSON.stringify(worker).length <= LIMITS.workerRecordCharsMax) return
  throw new ImpresarioError(
    'LIMIT_EXCEEDED',
    `The registration of a worker can have at most ${LIMITS.workerRecordCharsMax} characters as JSON. Send less.`,
  )
}
