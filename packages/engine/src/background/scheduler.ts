import {
  RECENT_MAX,
  SCHEDULER_CLIENT,
  firingAfter,
  pausedRecord,
  plan,
  resumedRecord,
  triggerKey,
  wallTime,
} from '@impresario/core'
import type {
  Clock,
  JobRequest,
  Log,
  PastFiring,
  Plan,
  Put,
  Random,
  Schedule,
  ScheduleRecord,
  Storage,
  Stored,
} from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { Zone, isoInstant } from '@impresario/recurrence'
import type { JobCreation } from '../job/job-creation.ts'
import type { ClientKey, KeyBook } from '../job/key-book.ts'
import type { LedService, Term } from '../service/leadership.ts'

export interface SchedulerOptions {
  readonly storage: Storage
  readonly creation: JobCreation
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly keys: KeyBook
  /** The schedules are others now. */
  readonly onReplaced: () => void
}

/** A schedule and how it stands. */
export interface ScheduleView {
  readonly schedule: Schedule
  /** Since when it is paused, and by whom. */
  readonly paused: ScheduleRecord['paused']
  /** When it fires next; `undefined` while it is off or paused. */
  readonly nextAt: number | undefined
  /** The next ten firings, that one first; none while it is off or paused. */
  readonly upcoming: readonly number[]
  /** What became of the last ten, newest first. */
  readonly recent: readonly PastFiring[]
  /** The firing that was served last: its own time, and when it was served. */
  readonly lastFor: number | undefined
  readonly lastAt: number | undefined
  readonly lastJobId: string | undefined
}

type Note = Extract<Plan, { type: 'note' }>

interface Entry {
  readonly schedule: Schedule
  readonly zone: Zone
  /** What is stored, as this leader has read or written it; `unread` when another one may have. */
  stored: Stored<ScheduleRecord> | undefined | 'unread'
  /** Nothing to do before. */
  nextAt: number
}

/** Clocks are set while programs run, so the scheduler never sleeps until a time of day without looking at the clock. */
const IDLE_MS = 1_000
/** A schedule whose job cannot be created is tried again so often. */
const RETRY_MS = 30_000
/** Whether a paused schedule goes on is looked up so often: any instance may have resumed it. */
const PAUSED_LOOK_MS = 1_000
/** Somebody else wrote the record at the same moment, once more. */
const WRITES_MAX = 10
/** So many firings to come are told. */
const UPCOMING = 10

/**
 * Starts jobs by the calendar.
 *
 * The record of a schedule names the firing that was served last. It is written in the commit that creates the job, and
 * under the guard of the lead: so each firing has one job, whatever crashes, and whichever instances believe to be the leader.
 */
export class Scheduler implements LedService {
  readonly name = 'scheduler'
  readonly idleMs = IDLE_MS
  readonly #options: SchedulerOptions
  #entries: readonly Entry[] = []

  constructor(options: SchedulerOptions) {
    this.#options = options
  }

  readonly isWanted = (): boolean => this.#entries.length > 0

  /** Takes other schedules from now on: all of them, or none when one of them cannot work. */
  async replace(schedules: readonly Schedule[]): Promise<void> {
    const entries: Entry[] = []
    const names = new Set<string>()
    for (const schedule of schedules) {
      if (names.has(schedule.name)) throw refused(schedule, 'is there twice. Names must be unique.')
      names.add(schedule.name)
      await this.#request(schedule)
      const zone = new Zone(schedule.timeZone)
      entries.push({ schedule, zone, stored: 'unread', nextAt: Number.NEGATIVE_INFINITY })
    }
    this.#entries = entries
    this.#options.onReplaced()
  }

  async list(): Promise<readonly ScheduleView[]> {
    const now = this.#wallNow()
    return Promise.all(
      this.#entries.map(async ({ schedule, zone }) => {
        const record = (await this.#options.storage.read('schedule', schedule.name))?.value
        const fired = record?.jobId === undefined ? undefined : record
        const paused = schedule.isEnabled ? record?.paused : undefined
        const next = schedule.isEnabled ? nextAt(schedule, zone, record, now) : undefined
        return {
          schedule,
          paused,
          nextAt: next,
          upcoming: next === undefined ? [] : upcoming(schedule, zone, record, next),
          recent: record?.recent ?? [],
          lastFor: fired?.firedFor,
          lastAt: fired?.firedAt,
          lastJobId: fired?.jobId,
        }
      }),
    )
  }

  /**
   * Starts the job of a schedule now; its firings go on as if nothing had been. With a key, the same call once more finds the
   * job of the first one. Durable when this resolves.
   */
  async runNow(name: string, once?: ClientKey): Promise<{ readonly jobId: string }> {
    const { storage, creation, random, keys } = this.#options
    const { schedule } = this.#entryOf(name)
    const use = once && keys.use(once, { schedule: name })
    const known = use && (await keys.find(use))
    if (known !== undefined) return { jobId: known }
    const request = await this.#request(schedule)
    const id = random.id()
    const extra = use && [keys.put(use, id)]
    const created = await creation.startScheduled(id, request, { extra })
    await storage.sync()
    // Another call with this key was faster.
    const winner = use && created.type !== 'applied' ? await keys.find(use) : undefined
    if (created.type === 'applied' || winner !== undefined) return { jobId: winner ?? id }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', `The job of "${name}" could not be written. Try again.`)
  }

  /**
   * Nothing fires from here on, also after a restart. A leader that has read the record before cannot write it any more, so that
   * it starts no job either. Durable when this resolves; doing it again changes nothing.
   */
  async pause(name: string, by: string): Promise<void> {
    const { schedule } = this.#entryOf(name)
    if (!schedule.isEnabled) {
      throw new ImpresarioError(
        'INVALID_REQUEST',
        `The schedule "${name}" is switched off in its file, so that it cannot be paused.`,
      )
    }
    await this.#rewrite(name, (record) =>
      record?.paused === undefined ? pausedRecord(schedule, record, { at: this.#wallNow(), by }) : undefined,
    )
    this.#options.log.info('schedule paused', { schedule: name, by })
  }

  /** It fires again, from its next time on: those that have passed meanwhile are left out. Durable when this resolves. */
  async resume(name: string, by: string): Promise<void> {
    const entry = this.#entryOf(name)
    await this.#rewrite(name, (record) =>
      record?.paused === undefined ? undefined : resumedRecord(entry.schedule, entry.zone, record, this.#wallNow()),
    )
    entry.nextAt = Number.NEGATIVE_INFINITY
    this.#options.log.info('schedule resumed', { schedule: name, by })
  }

  #entryOf(name: string): Entry {
    const found = this.#entries.find((entry) => entry.schedule.name === name)
    if (found === undefined) throw new ImpresarioError('NOT_FOUND', `There is no schedule "${name}".`)
    return found
  }

  /** `change` gives nothing when all is as it should be. */
  async #rewrite(
    name: string,
    change: (record: ScheduleRecord | undefined) => ScheduleRecord | undefined,
  ): Promise<void> {
    const { storage } = this.#options
    for (let write = 0; write < WRITES_MAX; write += 1) {
      const stored = await storage.read('schedule', name)
      const value = change(stored?.value)
      const put: Put | undefined = value && { kind: 'schedule', id: name, value, version: (stored?.version ?? 0) + 1 }
      if (put === undefined || (await storage.commit({ put: [put] })) === 'committed') {
        await storage.sync()
        return
      }
    }
    throw new ImpresarioError('CONFLICT', `The schedule "${name}" is being changed. Try again.`)
  }

  readonly begin = async (): Promise<void> => {
    for (const entry of this.#entries) {
      entry.stored = 'unread'
      entry.nextAt = Number.NEGATIVE_INFINITY
    }
  }

  readonly round = async (term: Term): Promise<{ worked: number; nextInMs: number | undefined }> => {
    let worked = 0
    let soonest = Number.POSITIVE_INFINITY
    const entries = this.#entries
    for (const entry of entries) {
      const now = this.#wallNow()
      if (term.isOver()) break
      if (now >= entry.nextAt) worked += await this.#serve(entry, term, now)
      soonest = Math.min(soonest, entry.nextAt)
    }
    const nextInMs = Math.max(0, soonest - this.#wallNow())
    return { worked, nextInMs: Number.isFinite(nextInMs) ? nextInMs : undefined }
  }

  /** One that fails does not keep the others from their time. */
  async #serve(entry: Entry, term: Term, now: number): Promise<number> {
    const { storage, log } = this.#options
    try {
      if (entry.stored === 'unread') entry.stored = await storage.read('schedule', entry.schedule.name)
      return await (entry.schedule.isEnabled
        ? this.#act(entry, entry.stored?.value, term, now)
        : this.#forget(entry, term))
    } catch (error) {
      entry.stored = 'unread'
      entry.nextAt = now + RETRY_MS
      log.error('a schedule could not be served and is tried again', {
        schedule: entry.schedule.name,
        error: String(error),
      })
      return 0
    }
  }

  async #act(entry: Entry, record: ScheduleRecord | undefined, term: Term, now: number): Promise<number> {
    const { schedule, zone } = entry
    const due = plan(schedule, zone, record, now)
    switch (due.type) {
      case 'wait':
        entry.nextAt = due.nextAt
        return 0
      case 'paused':
        entry.stored = 'unread'
        entry.nextAt = now + PAUSED_LOOK_MS
        return 0
      case 'note':
        this.#options.log.info('a schedule goes on from here without a job', {
          schedule: schedule.name,
          reason: due.reason,
        })
        await this.#note(entry, due, term, now)
        return 1
      case 'fire': {
        let fired = 0
        for (const time of due.times) {
          if (term.isOver() || !(await this.#fire(entry, time, term, now))) break
          fired += 1
        }
        return fired
      }
    }
  }

  async #note(entry: Entry, { upTo, reason }: Note, term: Term, now: number): Promise<void> {
    const skipped = reason === 'begun' ? undefined : reason
    const { put, stored } = this.#recordOf(entry, { firedFor: upTo, firedAt: now, jobId: undefined, skipped })
    const outcome = await this.#options.storage.commit({ put: [put], guard: term.guard })
    entry.stored = outcome === 'committed' ? stored : 'unread'
  }

  /** The job and the note that its time was served, in one commit. */
  async #fire(entry: Entry, time: number, term: Term, now: number): Promise<boolean> {
    const { creation, random, log } = this.#options
    const { schedule } = entry
    const request = await this.#request(schedule, { scheduled_for: isoInstant(time) })
    const id = random.id()
    const { put, stored } = this.#recordOf(entry, { firedFor: time, firedAt: now, jobId: id, skipped: undefined })
    const applied = await creation.startScheduled(id, request, { extra: [put], guard: term.guard })
    if (applied.type !== 'applied') {
      // Another leader was faster, or this one leads no longer: what is stored decides.
      entry.stored = 'unread'
      return false
    }
    entry.stored = stored
    log.info('schedule fired', { schedule: schedule.name, job_id: id, scheduled_for: isoInstant(time) })
    return true
  }

  #recordOf(entry: Entry, past: PastFiring): { readonly put: Put; readonly stored: Stored<ScheduleRecord> } {
    const version = entry.stored === 'unread' ? 1 : (entry.stored?.version ?? 0) + 1
    const { firedFor, firedAt, jobId } = past
    const before = entry.stored === 'unread' ? [] : (entry.stored?.value.recent ?? [])
    // That a schedule has begun is no firing.
    const isFiring = jobId !== undefined || past.skipped !== undefined
    const recent = isFiring ? [past, ...before].slice(0, RECENT_MAX) : before
    const value: ScheduleRecord = { firedFor, firedAt, jobId, trigger: triggerKey(entry.schedule), recent }
    return { put: { kind: 'schedule', id: entry.schedule.name, value, version }, stored: { value, version } }
  }

  /** Being off is not being down: a schedule that is switched on again starts over. */
  async #forget(entry: Entry, term: Term): Promise<number> {
    entry.nextAt = Number.POSITIVE_INFINITY
    if (entry.stored === undefined) return 0
    await this.#options.storage.commit({ drop: [{ kind: 'schedule', id: entry.schedule.name }], guard: term.guard })
    return 1
  }

  /** The request for the engine. Built each time, because blueprints may have been replaced since the schedule was loaded. */
  async #request(schedule: Schedule, more: JsonObject = {}): Promise<JobRequest> {
    const { clientId, priority, dispatchTimeoutMs, resultTimeoutMs, metadata, webhookUrl } = schedule
    const checked = await this.#options.creation.check({
      blueprint: schedule.blueprint,
      client: clientId === SCHEDULER_CLIENT ? { id: clientId, plan: 'system' } : { id: clientId },
      initialData: schedule.initialData,
      priority,
      dispatchTimeoutMs,
      resultTimeoutMs,
      metadata: { ...metadata, schedule: schedule.name, ...more },
      webhookUrl,
    })
    if ('request' in checked) return checked.request
    const { code, problems, suggestion = '' } = checked.refusal
    throw code === 'BLUEPRINT_NOT_FOUND'
      ? refused(schedule, `names the blueprint "${schedule.blueprint}", which is not there.${suggestion}`, 'blueprint')
      : refused(schedule, `has data that "${schedule.blueprint}" refuses: ${problems.join('; ')}`, 'input_data')
  }

  #wallNow(): number {
    return wallTime(this.#options.clock)
  }
}

function nextAt(schedule: Schedule, zone: Zone, record: ScheduleRecord | undefined, now: number): number | undefined {
  const due = plan(schedule, zone, record, now)
  if (due.type === 'paused') return undefined
  if (due.type === 'wait') return due.nextAt
  return due.type === 'fire' ? now : firingAfter({ trigger: schedule.trigger, zone, anchor: due.upTo }, now)
}

/** From the next firing on. An interval counts from the one that was served last. */
function upcoming(schedule: Schedule, zone: Zone, record: ScheduleRecord | undefined, next: number): readonly number[] {
  const anchor = record?.trigger === triggerKey(schedule) ? Math.min(record.firedFor, next) : next
  const times: number[] = []
  for (let at = next; Number.isFinite(at) && times.length < UPCOMING;) {
    times.push(at)
    at = firingAfter({ trigger: schedule.trigger, zone, anchor }, at)
  }
  return times
}

/** `key`: what it is called in a file of schedules. */
function refused(schedule: Schedule, what: string, key?: string): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', `The schedule "${schedule.name}" ${what}`, {
    details: { schedule: schedule.name, ...(key === undefined ? {} : { key }) },
  })
}
