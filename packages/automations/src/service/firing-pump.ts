import { isJsonObject } from '@impresario/protocol'
import { wallTime } from '@impresario/core'
import type { Batch, Clock, Job, Lease, Log, Random, Service, Storage, Stored } from '@impresario/core'
import { Pump } from '@impresario/engine'
import type { Engine } from '@impresario/engine'
import { isoInstant } from '@impresario/recurrence'
import type { MisfirePlan, PlannedRun, Restriction, Zones } from '@impresario/recurrence'
import type { Calendars } from './calendars.ts'
import { probeItemOf } from './condition.ts'
import { gateIdOf, isFull, putGate, readGate, storedGate, withoutRun } from './gate.ts'
import type { Launched, Launcher } from './launcher.ts'
import { asAutomation, firingItem, nearId, putAutomation } from './record.ts'
import type { AutomationRecord } from './record.ts'
import { automationOf, startOf } from './run-start.ts'
import { skipEntries } from './skips.ts'
import { planOf } from './timetable.ts'
import { asWaitingRun, callItem, eventOfWaiting, putBack, waitItemId } from './waiting-run.ts'
import type { WaitingRun } from './waiting-run.ts'

export interface FiringPumpOptions {
  readonly storage: Storage
  readonly engine: Engine
  readonly launcher: Launcher
  readonly zones: Zones
  readonly calendars: Pick<Calendars, 'restrictionOf'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** What else stands in the queue, by its kind. */
  readonly others?: Readonly<Record<string, (lease: Lease) => Promise<void>>>
}

const LEASE_MS = 30_000
const BATCH = 100
const IDLE_MS = 1_000
const CONFLICTS_MAX = 5
const EVENT_GONE = 'The run waited for its place until its event was gone: for many days no server looked at it.'

/**
 * Starts runs when their time has come. The next occurrence of each automation is an item of the queue; any instance may
 * claim it, and one commit makes a run or a logged skip of it and puts the one that follows into the queue. So there is no
 * leader, and whatever crashes, every occurrence ends as exactly one of the two.
 */
export class FiringPump implements Service {
  readonly name = 'firings'
  readonly #options: FiringPumpOptions
  readonly #pump: Pump
  #unwatch: (() => void) | undefined
  #lookedAt: number | undefined
  /** Gates that a run has left. */
  readonly #left = new Set<string>()
  /** Items that wait for a job that has ended. */
  readonly #called = new Set<string>()

  constructor(options: FiringPumpOptions) {
    this.#options = options
    const { clock, log } = options
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round: () => this.#round() })
    options.engine.onEnded((job) => this.#onEnded(job))
  }

  async start(): Promise<void> {
    this.#unwatch ??= this.#options.storage.watch('firings', () => this.#pump.wake())
    await this.#pump.start()
  }

  async stop(): Promise<void> {
    this.#unwatch?.()
    this.#unwatch = undefined
    await this.#pump.stop()
  }

  /** When this process looked for due runs last, on its own clock; `undefined` before the first time. */
  get lookedAt(): number | undefined {
    return this.#lookedAt
  }

  tick(): Promise<{ readonly worked: number }> {
    return this.#pump.tick()
  }

  #onEnded(job: Job): void {
    const probe = probeItemOf(job)
    if (probe !== undefined) {
      this.#called.add(probe)
      this.#pump.wake()
    }
    if (automationOf(job) === undefined) return
    const { gate } = startOf(job)
    if (gate !== undefined) this.#callLater(gate)
  }

  async #round(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const left = [...this.#left]
    this.#left.clear()
    let ahead = 0
    for (let at = 0; at < left.length; at += BATCH) {
      const some = left.slice(at, at + BATCH)
      const done = await Promise.all(some.map((gate) => this.#callNext(gate)))
      ahead += done.filter(Boolean).length
      // It may have looked just before its place was free: the next round calls it again.
      for (const [index, gate] of some.entries()) if (done[index] === false) this.#left.add(gate)
    }
    const called = [...this.#called]
    this.#called.clear()
    for (const item of called) await callItem(this.#options.storage, item)
    const { leases, nextInMs } = await this.#options.storage.claim('firings', { limit: BATCH, leaseMs: LEASE_MS })
    this.#lookedAt = this.#options.clock.now()
    await Promise.all(leases.map((lease) => this.#serve(lease)))
    return { worked: leases.length + ahead + called.length, nextInMs }
  }

  /**
   * Whoever is first in the line looks for its place at once; false while it is being looked at. A gate that nobody is in may
   * go; who comes in between keeps it.
   */
  async #callNext(gateId: string): Promise<boolean> {
    const { storage } = this.#options
    const gate = await readGate(storage, gateId, 1)
    const [first] = gate.waiting
    if (first !== undefined) return callItem(storage, waitItemId(first))
    if (gate.open.length === 0 && gate.version > 0) await storage.commit({ put: [putGate(gate)] })
    return true
  }

  async #serve(lease: Lease): Promise<void> {
    try {
      const { payload } = lease
      const kind = isJsonObject(payload) ? payload['kind'] : undefined
      const other = typeof kind === 'string' ? this.#options.others?.[kind] : undefined
      if (other !== undefined) await other(lease)
      else if (isJsonObject(payload) && kind === 'waiting') await this.#admit(asWaitingRun(payload), lease)
      else await this.#fire(lease)
    } catch (error) {
      // The item stays in its queue and is served again when the lease ends.
      this.#options.log.error('an automation could not be served and is tried again', {
        item: lease.id,
        error: String(error),
      })
    }
  }

  async #fire(lease: Lease): Promise<void> {
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const stored = await this.#options.storage.read('automation', lease.id)
      const found = stored === undefined ? undefined : asAutomation(stored)
      if (found?.value.status !== 'active') {
        await this.#options.storage.commit({ settle: lease })
        return
      }
      if (await this.#fireOne(found, lease)) return
    }
  }

  /** Whether it was written. */
  async #fireOne(stored: Stored<AutomationRecord>, lease: Lease): Promise<boolean> {
    const { value: record, version } = stored
    const now = wallTime(this.#options.clock)
    const { snooze } = record
    const restriction = await this.#options.calendars.restrictionOf(record.definition, record.owner)
    if (snooze !== undefined) {
      if (now < snooze.until) return this.#note({ record, version, lease, skips: [], inMs: snooze.until - now })
      const handledUpTo = Math.max(record.handledUpTo, snooze.scheduledFor)
      return this.#run({ record: { ...record, handledUpTo }, version, lease, now, restriction }, snooze.scheduledFor)
    }
    const plan = planOf(record, now, this.#options.zones, restriction)
    if (plan === undefined) return this.#note({ record: withoutNext(record), version, lease, skips: [] })
    const [first] = plan.runs
    if (first === undefined) return this.#rest(record, version, lease, plan, now)
    // One that was waited for keeps its time: the plan counts delays of late ones from now.
    const due = record.next?.scheduledFor === first.scheduledFor ? record.next : first
    if (due.runAt > now) return this.#note({ ...postponed(record, due, version, lease), inMs: due.runAt - now })
    // What lies behind this occurrence is planned when its turn comes.
    const skips = plan.skips.filter(({ last }) => last <= first.scheduledFor)
    const handledUpTo = first.scheduledFor
    const run = { record: { ...record, handledUpTo }, version, lease, now, restriction, skips, plan }
    return this.#run(run, first.scheduledFor)
  }

  /** Nothing runs now. */
  #rest(record: AutomationRecord, version: number, lease: Lease, plan: MisfirePlan, now: number): Promise<boolean> {
    const { catchUpUntil: _, next: __, ...rest } = record
    const { next, skips, upTo } = plan
    const after = { ...rest, handledUpTo: upTo, ...(next === undefined ? {} : { next }) }
    return this.#note({
      record: after,
      version,
      lease,
      skips,
      ...(next === undefined ? {} : { inMs: next.runAt - now }),
    })
  }

  async #note(noted: Noted): Promise<boolean> {
    const { record, version, lease, skips, inMs } = noted
    const { storage, random, clock } = this.#options
    const entries = skipEntries(record, skips, wallTime(clock), random)
    const batch: Batch = {
      settle: lease,
      put: [putAutomation(record, version + 1), ...entries],
      enqueue: inMs === undefined ? [] : [firingItem(record, inMs)],
    }
    return (await storage.commit(batch)) === 'committed'
  }

  async #run(due: Due, scheduledFor: number): Promise<boolean> {
    const { version, lease, now, skips = [] } = due
    const { launcher, random } = this.#options
    const record = this.#afterRun(due, scheduledFor)
    const { next } = record
    const launched = await launcher.launch({
      record,
      runId: nearId(random.id(), record.id),
      trigger: { kind: 'time', scheduledFor },
      event: { scheduled_for: isoInstant(scheduledFor) },
      settle: lease,
      put: [putAutomation(record, version + 1), ...skipEntries(record, skips, now, random)],
      enqueue: next === undefined ? [] : [firingItem(record, next.runAt - now)],
    })
    return launched.type !== 'lost'
  }

  /** The automation once this occurrence is served. Those that are still to be made good are spread over the time that is left. */
  #afterRun({ record, plan, now, restriction }: Due, scheduledFor: number): AutomationRecord {
    const { snooze: _, next: __, catchUpUntil, ...rest } = record
    const later = planOf({ ...rest, handledUpTo: scheduledFor }, now, this.#options.zones, restriction)
    const { misfire } = record.definition
    const left = later?.runs.length ?? 0
    if (left === 0) {
      const next = later?.next
      return next === undefined ? rest : { ...rest, next }
    }
    const [first] = later?.runs ?? []
    if (first === undefined) return rest
    const spreadMs = misfire.kind === 'catch_up' ? (misfire.spreadMs ?? 0) : 0
    if (spreadMs === 0) return { ...rest, next: first }
    const all = plan?.runs.length ?? left
    const until = catchUpUntil ?? now + (spreadMs * (all - 1)) / all
    const runAt = Math.max(first.runAt, now + Math.max(0, until - now) / left)
    return { ...rest, next: { scheduledFor: first.scheduledFor, runAt }, catchUpUntil: until }
  }

  /** A run that waits for its place. Whoever comes after it is called when it leaves the line. */
  async #admit(waiting: WaitingRun, lease: Lease): Promise<void> {
    const { storage, clock } = this.#options
    const { automationId, runId, gate: gateId } = waiting
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const gate = await storedGate(storage, gateId, 1)
      const place = gate.waiting.indexOf(runId)
      if (place === -1) {
        await storage.commit({ settle: lease })
        return
      }
      const stored = await storage.read('automation', automationId)
      const record = stored === undefined ? undefined : asAutomation(stored).value
      if (record === undefined || record.status === 'canceled') {
        if ((await storage.commit({ settle: lease, put: [putGate(withoutRun(gate, runId))] })) === 'conflict') continue
        this.#callLater(gateId)
        return
      }
      const outcome = (await this.#mayBegin(record, gateId, place))
        ? await this.#begin(record, waiting, lease)
        : 'waiting'
      if (outcome === 'lost') continue
      if (outcome === 'waiting') await putBack(storage, lease, { waiting, place, now: wallTime(clock) })
      else this.#callLater(gateId)
      return
    }
  }

  /** Where its automation passes another gate by now, that one decides. */
  async #mayBegin(record: AutomationRecord, gateId: string, place: number): Promise<boolean> {
    if (gateIdOf(record) !== gateId) return true
    if (place > 0) return false
    return !isFull(await readGate(this.#options.storage, gateId, record.definition.concurrency.limit))
  }

  async #begin(record: AutomationRecord, waiting: WaitingRun, lease: Lease): Promise<Launched['type']> {
    const { storage, launcher } = this.#options
    const { runId, gate: gateId, trigger, params, begins, tracing } = waiting
    const event = await eventOfWaiting(storage, waiting)
    const isMoved = gateIdOf(record) !== gateId
    const leave = async () => [putGate(withoutRun(await storedGate(storage, gateId, 1), runId))]
    const launch = {
      record,
      runId,
      trigger,
      event: event ?? null,
      params,
      ...(begins === undefined ? {} : { begins }),
      ...(tracing === undefined ? {} : { tracing }),
      settle: lease,
      isNext: true,
    }
    if (event === undefined) {
      return (await launcher.skip({ ...launch, put: await leave() }, 'overlap', undefined, EVENT_GONE)).type
    }
    return (await launcher.launch(isMoved ? { ...launch, put: await leave() } : launch)).type
  }

  #callLater(gateId: string): void {
    this.#left.add(gateId)
    this.#pump.wake()
  }
}

interface Due {
  readonly record: AutomationRecord
  readonly version: number
  readonly lease: Lease
  readonly now: number
  readonly restriction: Restriction
  readonly skips?: MisfirePlan['skips']
  readonly plan?: MisfirePlan
}

interface Noted {
  readonly record: AutomationRecord
  readonly version: number
  readonly lease: Lease
  readonly skips: MisfirePlan['skips']
  readonly inMs?: number
}

function postponed(record: AutomationRecord, next: PlannedRun, version: number, lease: Lease): Noted {
  return { record: { ...record, next }, version, lease, skips: [] }
}

function withoutNext(record: AutomationRecord): AutomationRecord {
  const { next: _, ...rest } = record
  return rest
}
