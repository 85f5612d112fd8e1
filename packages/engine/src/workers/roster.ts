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
  readonly onMoment?: ((moment: WorkerMoment) => void) | undefined
}

/** A silent worker is removed within minutes. */
const FULL_S = 60

/** What a log line shows of a worker's skills. */
const SHOWN_SKILLS = 20

/** Heartbeats of one worker are seconds apart; more conflicts than this are not a matter of timing. */
const SAVES_MAX = 5

/** Who the workers are: their records, from what they say when they register and with every sign of life. */
export class Roster {
  readonly #options: RosterOptions

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
    const worker = await this.#save(workerId, patch !== undefined, (known) => {
      before = known
      return known && mergeHeartbeat(known, patch ?? {}, clock.now())
    })
    if (worker === undefined || before === undefined) {
      throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found', { details: { worker_id: workerId } })
    }
    if (worker.status === before.status) dispatcher.put(worker)
    else dispatcher.introduce(worker)
    if (onMoment !== undefined) {
      const changed = changedFields(before, worker)
      if (changed.length > 0) onMoment({ at: clock.now(), event: 'status_update', worker, changed })
    }
    return { worker, heardBefore: before.seenAt }
  }

  /** Changes a worker's record from what is stored, not from what is remembered: another instance may have heard more. */
  async #save(
    id: string,
    isNews: boolean,
    change: (known: WorkerRecord | undefined) => WorkerRecord | undefined,
  ): Promise<WorkerRecord | undefined> {
    const { storage, log } = this.#options
    for (let conflicts = 0; ; conflicts += 1) {
      const stored = await storage.read('worker', id)
      const value = change(stored?.value)
      if (value === undefined) return undefined
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
