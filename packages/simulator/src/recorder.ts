import { isEnded, taskId, timerId } from '@impresario/core'
import type {
  Batch,
  Claimed,
  ClaimOptions,
  Facets,
  ItemView,
  Job,
  Kind,
  LaneView,
  LeaseRef,
  ListQuery,
  Queue,
  Records,
  Storage,
  Stored,
} from '@impresario/core'
import { wakeUp } from './checkers/wake-up.ts'
import type { Chronicle, ItemRef, Version } from './chronicle.ts'
import { markClaims, markCommit } from './landmarks.ts'
import { lookAround, neighboursOf } from './sight.ts'
import type { Tally } from './tally.ts'

export interface RecorderOptions {
  /** The storage as the engines use it. */
  readonly inner: Storage
  /** The same without planted bugs, for inspection. */
  readonly truth: Storage
  readonly chronicle: Chronicle
  readonly tally: Tally
  /** The jobs as they were last seen; outlives a storage that is reopened. */
  readonly jobs: Map<string, Version>
}

/**
 * Sits between the engines and their storage, records what is committed, and checks after every change that all
 * required data is there.
 *
 * The embedded storage does its work before it returns a promise. A read that is issued synchronously after the change
 * therefore sees exactly the state that the change left.
 */
export class Recorder implements Storage {
  readonly #options: RecorderOptions
  /** Commits in progress, by job: until they are answered, only they know the state of the job. */
  readonly #pending = new Map<string, number>()

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  now(): Promise<number> {
    return this.#options.inner.now()
  }

  read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    return this.#options.inner.read(kind, id)
  }

  list<K extends Kind>(kind: K, query: ListQuery): Promise<readonly (Stored<Records[K]> & { readonly id: string })[]> {
    return this.#options.inner.list(kind, query)
  }

  counts(kind: Kind, facets: Pick<Facets, 'owner' | 'name'>): Promise<Readonly<Record<string, number>>> {
    return this.#options.inner.counts(kind, facets)
  }

  peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    return this.#options.inner.peek(queue, ids)
  }

  held(queue: Queue): Promise<readonly string[]> {
    return this.#options.inner.held(queue)
  }

  lanes(queue: Queue): Promise<readonly LaneView[]> {
    return this.#options.inner.lanes(queue)
  }

  oldest(queue: Queue): Promise<number | undefined> {
    return this.#options.inner.oldest(queue)
  }

  async claim(queue: Queue, options: ClaimOptions): Promise<Claimed> {
    const fill = this.#options.chronicle.reserve()
    const claimed = await this.#options.inner.claim(queue, options)
    this.#claimed(claimed, fill)
    if (queue === 'tasks') markClaims(this.#options.tally, claimed.leases, options.holder)
    return claimed
  }

  async claimExpired(queue: Queue, options: { readonly limit: number; readonly leaseMs: number }): Promise<Claimed> {
    const fill = this.#options.chronicle.reserve()
    const claimed = await this.#options.inner.claimExpired(queue, options)
    this.#claimed(claimed, fill)
    return claimed
  }

  #claimed({ leases }: Claimed, fill: ReturnType<Chronicle['reserve']>): void {
    fill(leases.length === 0 ? undefined : { type: 'claimed', leases })
    for (const { queue, id, token } of leases) {
      this.#options.chronicle.note('storage', `claimed ${queue} ${id} #${token}`)
    }
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
    const { inner, truth, tally } = this.#options
    const renewing = inner.renew(leases, leaseMs)
    const looking = Promise.all(leases.map(({ queue, id }) => truth.peek(queue, [id])))
    const kept = await renewing
    const views = await looking
    for (const [index, ref] of leases.entries()) {
      if (kept[index] !== true) continue
      tally.sometimes(leaseMs > 0 ? 'lease kept by heartbeat' : 'aborted poll gave back')
      this.#checkLease(ref, leaseMs, views[index]?.[0])
    }
    return kept
  }

  /** [F-05] The result of a renewal is true: the lease lasts as long as requested, or is over. */
  #checkLease(ref: LeaseRef, leaseMs: number, view: ItemView | undefined): void {
    const { chronicle } = this.#options
    if (leaseMs === 0) {
      if (view?.lease !== undefined) chronicle.broken('renewed', `${ref.id} was handed back and is still held`)
    } else if (view?.lease?.token !== ref.token || view.lease.endsInMs < leaseMs) {
      chronicle.broken('renewed', `${ref.id} was said to be kept for ${leaseMs} ms and is not`)
    }
  }

  async commit(batch: Batch): Promise<'committed' | 'conflict'> {
    const { inner, truth, jobs, chronicle } = this.#options
    const puts = versionsIn(batch)
    const around = neighboursOf(batch)
      .filter((id) => !this.#pending.has(id) && !puts.some((put) => put.id === id))
      .map((id) => jobs.get(id))
      .filter((version) => version !== undefined)
    const before = puts.map(({ id }) => jobs.get(id)?.job)
    this.#setPending(puts, 1)
    const fill = chronicle.reserve()
    const committing = inner.commit(batch)
    const looking = lookAround(truth, [...puts, ...around], leftBehind(puts, before))
    const outcome = await committing
    const { sight, remains } = await looking
    this.#setPending(puts, -1)
    if (outcome === 'conflict') {
      fill(undefined)
      this.#refused(batch, puts)
      return outcome
    }
    fill(this.#write(batch, puts))
    for (const { job } of [...puts, ...around]) this.#report(wakeUp(job, sight))
    for (const { queue, id } of remains) {
      this.#report([{ rule: 'leftBehind', problem: `${queue} ${id} is still there after its job went on` }])
    }
    for (const [index, { job }] of puts.entries()) markCommit(this.#options.tally, before[index], job)
    return outcome
  }

  #report(findings: readonly { readonly rule: string; readonly problem: string }[]): void {
    for (const { rule, problem } of findings) this.#options.chronicle.broken(rule, problem)
  }

  #refused(batch: Batch, puts: readonly Version[]): void {
    const { tally, jobs } = this.#options
    const isOutrun = puts.some(({ id, version }) => (jobs.get(id)?.version ?? 0) >= version)
    const isTwin = batch.put?.some(({ kind }) => kind === 'key') === true
    if (isTwin) tally.sometimes('create raced by its twin')
    else if (isOutrun) tally.sometimes('version conflict decided anew')
    else if (batch.settle !== undefined) tally.sometimes('lease lost before commit')
  }

  #write(batch: Batch, puts: readonly Version[]): Parameters<ReturnType<Chronicle['reserve']>>[0] {
    const { chronicle, jobs } = this.#options
    for (const put of puts) {
      jobs.set(put.id, put)
      const { status, state, visit } = put.job
      chronicle.note('storage', `job ${put.id} v${put.version} ${status} ${state}#${visit}`)
    }
    const enqueued = refs(batch.enqueue)
    const removed = refs(batch.remove)
    const { settle } = batch
    if (settle !== undefined) chronicle.note('storage', `settled ${settle.queue} ${settle.id} #${settle.token}`)
    if (puts.length + enqueued.length + removed.length === 0 && settle === undefined) return undefined
    const born = (batch.enqueue ?? []).flatMap(({ queue, id, claimed }) =>
      claimed === undefined ? [] : [{ queue, id, token: claimed.token }],
    )
    for (const { queue, id, token } of born) chronicle.note('storage', `born claimed ${queue} ${id} #${token}`)
    if (born.length > 0) this.#options.tally.sometimes('task born in the hands of a worker')
    return { type: 'committed', jobs: puts, enqueued, removed, settled: settle, born }
  }

  #setPending(puts: readonly Version[], by: 1 | -1): void {
    for (const { id } of puts) {
      const count = (this.#pending.get(id) ?? 0) + by
      if (count === 0) this.#pending.delete(id)
      else this.#pending.set(id, count)
    }
  }

  async sync(): Promise<void> {
    return this.#options.inner.sync()
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    return this.#options.inner.watch(queue, listener)
  }

  close(): Promise<void> {
    return this.#options.inner.close()
  }
}

function versionsIn(batch: Batch): readonly Version[] {
  const found: Version[] = []
  for (const put of batch.put ?? []) {
    if (put.kind === 'job') found.push({ id: put.id, version: put.version, job: put.value })
  }
  return found
}

function refs(items: readonly ItemRef[] = []): readonly ItemRef[] {
  return items.map(({ queue, id }) => ({ queue, id }))
}

/** Items of the previous state that must be removed with it. */
function leftBehind(puts: readonly Version[], before: readonly (Job | undefined)[]): readonly ItemRef[] {
  const items: ItemRef[] = []
  for (const [index, { job }] of puts.entries()) {
    const old = before[index]
    if (old === undefined) continue
    if (isEnded(job)) items.push({ queue: 'timers', id: timerId(job.id, 'life') })
    if (job.visit === old.visit && !isEnded(job)) continue
    if (old.wait?.kind === 'human' && job.wait?.kind !== 'human') {
      for (const timer of ['approval', 'reminder']) items.push({ queue: 'timers', id: timerId(job.id, timer) })
    }
    if (old.wait?.kind === 'event' && job.wait?.kind !== 'event') {
      items.push({ queue: 'timers', id: timerId(job.id, 'event') })
    }
    if (old.wait?.kind === 'sleep' && job.wait?.kind !== 'sleep') {
      items.push({ queue: 'timers', id: timerId(job.id, 'sleep') })
    }
    for (const [name, { call, outcome }] of Object.entries(old.branches)) {
      if (call.kind === 'task' && outcome === undefined) {
        items.push({ queue: 'tasks', id: taskId(job.id, old.visit, name) })
      }
    }
  }
  return items
}
