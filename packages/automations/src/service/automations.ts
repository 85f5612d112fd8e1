import { isoInstant, nextPage, wallTime } from '@impresario/core'
import type { Batch, Clock, Item, ListQuery, Log, Put, Random, Storage, Stored } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { DataObject } from '@impresario/protocol'
import { Zones } from '@impresario/recurrence'
import type { MisfirePlan } from '@impresario/recurrence'
import { readDefinition } from '../automation/definition.ts'
import type { AutomationDefinition } from '../automation/definition.ts'
import type { ToolCheck } from '../pipeline/compile.ts'
import { asAudit, authorOf, putAudit } from './audit.ts'
import type { Actor, AuditEntry } from './audit.ts'
import { keyChange, keyDrop, newKey } from './automation-key.ts'
import type { Dropped } from './automation-key.ts'
import { Budgets } from './budgets.ts'
import { Calendars } from './calendars.ts'
import { conditionChanges, conditionId, conditionItemIds, conditionsOf } from './condition.ts'
import { Hooks } from './hooks.ts'
import { Launcher } from './launcher.ts'
import type { Launch, Launched } from './launcher.ts'
import {
  asAutomation,
  firingItem,
  firstIdAt,
  nearId,
  putAutomation,
  subscriptionIds,
  subscriptionsOf,
} from './record.ts'
import { bytesOf, mustHaveSize } from './automation-size.ts'
import { mustKnowParams } from './given-params.ts'
import type { AutomationRecord, AutomationStatus } from './record.ts'
import { canceled, isSameChange, mustFire, notActive, staleRevision, tooManyConflicts } from './refusals.ts'

import { runBlueprintName } from './run-start.ts'
import { Secrets } from './secrets.ts'
import { skipEntries } from './skips.ts'
import { NOTHING_RUNS, planOf } from './timetable.ts'
import type { Vault } from './vault.ts'

export interface AutomationsOptions {
  readonly storage: Storage
  readonly engine: Engine
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** The tools that this actor may use. */
  readonly tools: (actor: Actor) => ToolCheck
  /** The zone of automations that name none. */
  readonly timezone: string
  readonly vault: Vault
  /** What the automations of one owner may have together. */
  readonly automationsBytesMax?: number | undefined
  /** What all waiting runs of one owner may bring. */
  readonly waitingBytesMax?: number | undefined
}

export interface AutomationQuery {
  readonly owner?: string | undefined
  readonly status?: AutomationStatus | undefined
  readonly search?: string | undefined
  readonly before?: string | undefined
  readonly limit: number
}

/** What belongs to a new automation beside its definition. */
export interface CreatedBeside {
  /** Whose it is; without it, of who creates it. */
  readonly owner?: string
  readonly extra?: DataObject | undefined
  /** Written in the same commit; by the id of the automation. */
  readonly put?: (automationId: string) => readonly Put[]
}

export interface AuditQuery {
  readonly owner?: string | undefined
  readonly subject?: string | undefined
  readonly action?: string | undefined
  /** Who did it. */
  readonly actor?: string | undefined
  /** Milliseconds since 1970. */
  readonly createdAfter?: number | undefined
  readonly createdBefore?: number | undefined
  readonly before?: string | undefined
  readonly limit: number
}

export interface Page<T> {
  readonly items: readonly T[]
  /** `before` of the next page, if there is one. */
  readonly next: string | undefined
}

/** After so many others were faster, in a row, something is wrong with the storage and not with the timing. */
/** Entries that one read of the audit log may look through, and reads of one page. */
const AUDIT_LOOKS = 2_000
const AUDIT_READS_MAX = 10
const CONFLICTS_MAX = 50
/** What one owner may have. Each is cheap, but lists and starts go over all of them. */
const AUTOMATIONS_MAX = 100_000
const OPEN_STATUSES = [
  'pending',
  'running',
  'waiting_for_worker',
  'waiting_for_human',
  'waiting_for_parallel',
  'waiting_for_child',
  'waiting_for_time',
  'quarantined',
] as const

interface Change {
  readonly record: AutomationRecord
  readonly action: string
  readonly details?: DataObject
  /** What else belongs to the change. */
  readonly put?: readonly Put[]
  readonly drop?: readonly Dropped[]
}

/** What agents do with automations. Every change is one commit with its audit entry; what is another's is not there. */
export class Automations {
  readonly budgets: Budgets
  readonly launcher: Launcher
  readonly zones = new Zones()
  readonly calendars: Calendars
  readonly hooks: Hooks
  readonly secrets: Secrets
  readonly #options: AutomationsOptions

  constructor(options: AutomationsOptions) {
    this.#options = options
    this.budgets = new Budgets(options)
    this.launcher = new Launcher({ ...options, budgets: this.budgets })
    this.calendars = new Calendars({ ...options, zones: this.zones })
    this.hooks = new Hooks(options)
    this.secrets = new Secrets(options)
  }

  /** Reads a definition without keeping it: what it would be, or everything that is wrong with it. */
  check(body: unknown, actor: Actor, createdAt = this.#now()): AutomationDefinition {
    const { tools, timezone } = this.#options
    return readDefinition(body, { tools: tools(actor), zones: this.zones, timezone, createdAt })
  }

  async create(body: DataObject, actor: Actor, beside: CreatedBeside = {}): Promise<AutomationRecord> {
    const { owner = actor.id, extra, put = () => [] } = beside
    const { storage, random } = this.#options
    const now = this.#now()
    const definition = this.check(body, actor, now)
    await this.#mustKnow(definition, owner)
    const who = { owner, createdBy: actor.id, updatedBy: actor.id }
    const times = { createdAt: now, updatedAt: now, handledUpTo: now }
    const said = { given: body, definition, ...(extra === undefined ? {} : { extra }) }
    const base = { id: random.id(), status: 'active', revision: 1 } as const
    const record = await this.#scheduled({ ...base, ...said, ...who, ...times }, now)
    mustFire(record)
    await this.#mustHaveRoom(record)
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const key = await newKey(storage, record, now)
      if ('holder' in key) return key.holder
      const change = { record, action: 'automation.created', put: [...put(record.id), ...key.put] }
      if ((await storage.commit(this.#batch(undefined, change, actor, 1))) === 'conflict') continue
      await storage.sync()
      return record
    }
    throw tooManyConflicts()
  }

  async read(id: string, actor: Actor): Promise<AutomationRecord> {
    return (await this.#read(id, actor)).value
  }

  /** Whoever asks; nothing if there is none. */
  async find(id: string): Promise<AutomationRecord | undefined> {
    const stored = await this.#options.storage.read('automation', id)
    return stored === undefined ? undefined : asAutomation(stored).value
  }

  /** Newest first. */
  async list({ owner, status, search, before, limit }: AutomationQuery): Promise<Page<AutomationRecord>> {
    const query: ListQuery = {
      limit,
      bytesMax: LIMITS.pageBytesMax,
      ...(owner === undefined ? {} : { owner }),
      ...(status === undefined ? {} : { status }),
      ...(search === undefined ? {} : { search }),
      ...(before === undefined ? {} : { before }),
    }
    const found = await this.#options.storage.list('automation', query)
    return { items: found.map((one) => asAutomation(one).value), next: nextPage(found, limit) }
  }

  /**
   * Takes another definition. What was due before the change is served by the old one, what comes after by the new one.
   * `expected`: the revision that the author has read; a later one is not overwritten.
   */
  update(id: string, body: DataObject, actor: Actor, extra?: DataObject, expected?: number): Promise<AutomationRecord> {
    return this.#change(id, actor, async (before, now) => {
      if (before.status === 'canceled') throw canceled(before)
      if (expected !== undefined && before.revision !== expected) {
        // The same change once more, because its answer was lost.
        if (isSameChange(before, body, actor, expected)) return undefined
        throw staleRevision(before, expected)
      }
      const definition = this.check(body, actor, before.createdAt)
      await this.#mustKnow(definition, before.owner)
      const isSameTime = JSON.stringify(timesOf(before.definition)) === JSON.stringify(timesOf(definition))
      const { extra: _, ...kept } = before
      const { snooze: __, next: ___, catchUpUntil: ____, ...rest } = kept
      const base = isSameTime ? kept : { ...rest, handledUpTo: Math.max(now, before.handledUpTo) }
      const said = { given: body, definition, ...(extra === undefined ? {} : { extra }) }
      const record = await this.#scheduled({ ...base, ...said, revision: before.revision + 1 }, now)
      mustFire(record)
      // A smaller one takes no room, however many there are.
      if (bytesOf(record) > bytesOf(before)) await this.#mustHaveRoom(record, 1)
      return { record, action: 'automation.updated', details: { revision: record.revision } }
    })
  }

  /** Occurrences of the time in which it is paused are skipped, and that is written down when it goes on. */
  pause(id: string, actor: Actor): Promise<AutomationRecord> {
    return this.#change(id, actor, (before) => {
      if (before.status === 'canceled') throw canceled(before)
      if (before.status === 'paused') return undefined
      const { next: _, snooze: __, catchUpUntil: ___, ...rest } = before
      return { record: { ...rest, status: 'paused' }, action: 'automation.paused' }
    })
  }

  resume(id: string, actor: Actor): Promise<AutomationRecord> {
    return this.#change(id, actor, async (before, now) => {
      if (before.status === 'canceled') throw canceled(before)
      if (before.status === 'active') return undefined
      const restriction = await this.calendars.restrictionOf(before.definition, before.owner)
      const plan = planOf(before, now, this.zones, restriction, NOTHING_RUNS)
      const put = plan === undefined ? [] : this.#pausedSkips(before, plan, now)
      const handledUpTo = Math.max(now, before.handledUpTo)
      const record = await this.#scheduled({ ...before, status: 'active', handledUpTo }, now)
      return { record, action: 'automation.resumed', put }
    })
  }

  /** For good. Its runs go on; cancel them one by one where that is wanted. */
  cancel(id: string, actor: Actor, reason?: string): Promise<AutomationRecord> {
    return this.#change(id, actor, (before) => {
      if (before.status === 'canceled') return undefined
      const { next: _, snooze: __, catchUpUntil: ___, ...rest } = before
      const details = reason === undefined ? {} : { reason }
      return { record: { ...rest, status: 'canceled' }, action: 'automation.canceled', details }
    })
  }

  /** Puts the next run off. */
  snooze(id: string, seconds: number, actor: Actor, reason?: string): Promise<AutomationRecord> {
    return this.#change(id, actor, (before, now) => {
      if (before.status !== 'active') throw notActive(before)
      if (before.next === undefined) {
        throw new ImpresarioError(
          'CONFLICT',
          'Nothing stands in the queue for this automation, so nothing can be put off.',
        )
      }
      const { scheduledFor, runAt } = before.next
      const until = Math.max(runAt, now) + seconds * 1_000
      const snooze = { scheduledFor, until, by: actor.id, reason, at: now }
      const record = { ...before, snooze, next: { scheduledFor, runAt: until } }
      const details = { until: isoInstant(until), ...(reason === undefined ? {} : { reason }) }
      return { record, action: 'automation.snoozed', details }
    })
  }

  /** Only what has no open runs: what they do is still to be seen. */
  async remove(id: string, actor: Actor): Promise<void> {
    const { storage, random } = this.#options
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const { value: record, version } = await this.#read(id, actor)
      const name = runBlueprintName(id)
      const [open] = await storage.list('job', { owner: record.owner, name, statuses: [...OPEN_STATUSES], limit: 1 })
      if (open !== undefined) {
        throw new ImpresarioError('CONFLICT', `The run ${open.id} is open. Cancel it or wait for its end, then delete.`)
      }
      const entry = {
        id: nearId(random.id(), id),
        at: this.#now(),
        ...authorOf(actor),
        subject: id,
        owner: record.owner,
      }
      const details = { title: record.definition.title }
      const drop = [
        { kind: 'automation', id } as const,
        ...subscriptionIds(record).map((one) => ({ kind: 'subscription', id: one }) as const),
        ...conditionsOf(record).map(({ at }) => ({ kind: 'condition', id: conditionId(id, at) }) as const),
      ]
      // The version is compared with one last write, because a drop takes whatever is there.
      const mark = putAutomation({ ...record, status: 'canceled' }, version + 1)
      const marked = await storage.commit({ put: [mark], drop: await keyDrop(storage, record) })
      if (marked === 'conflict') continue
      const put = [putAudit({ ...entry, action: 'automation.deleted', details })]
      await storage.commit({ put, drop, remove: [{ queue: 'firings', id }, ...conditionItemIds(record)] })
      await storage.sync()
      return
    }
    throw tooManyConflicts()
  }

  /** A run out of its turn; occurrences go on as if nothing had been. */
  async runNow(
    id: string,
    actor: Actor,
    params: DataObject = {},
    tracing?: Launch['tracing'],
  ): Promise<Exclude<Launched, { type: 'lost' }>> {
    const { storage, random } = this.#options
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const { value: record } = await this.#read(id, actor)
      if (record.status === 'canceled') throw canceled(record)
      mustKnowParams(record, params)
      const runId = nearId(random.id(), id)
      const trigger = { kind: 'manual', by: actor.id } as const
      const traced = tracing === undefined ? {} : { tracing }
      const launched = await this.launcher.launch({ record, runId, trigger, event: {}, params, ...traced })
      if (launched.type === 'lost') continue
      await storage.sync()
      return launched
    }
    throw tooManyConflicts()
  }

  async auditEntry(id: string, actor: Actor): Promise<AuditEntry> {
    const stored = await this.#options.storage.read('audit', id)
    const entry = stored === undefined ? undefined : asAudit(stored.value)
    if (entry === undefined || (!actor.isAdmin && entry.owner !== actor.id)) {
      throw new ImpresarioError('NOT_FOUND', 'Audit entry not found')
    }
    return entry
  }

  async audit(wanted: AuditQuery): Promise<Page<AuditEntry>> {
    const { owner, subject, action, actor, createdAfter, createdBefore, limit } = wanted
    const query: ListQuery = {
      limit,
      looksMax: AUDIT_LOOKS,
      ...(owner === undefined ? {} : { owner }),
      ...(subject === undefined ? {} : { name: subject }),
      ...(action === undefined ? {} : { status: action }),
      ...(createdAfter === undefined ? {} : { from: firstIdAt(createdAfter) }),
    }
    const ends = [wanted.before, createdBefore === undefined ? undefined : firstIdAt(createdBefore)]
    let last = ends.filter((end) => end !== undefined).toSorted()[0]
    const items: AuditEntry[] = []
    // A page may have fewer entries than were asked for, and yet not be the last.
    for (let reads = 0; reads < AUDIT_READS_MAX; reads += 1) {
      const found = await this.#options.storage.list('audit', {
        ...query,
        ...(last === undefined ? {} : { before: last }),
      })
      for (const { value } of found) {
        const entry = asAudit(value)
        if (actor === undefined || entry.actor === actor) items.push(entry)
      }
      last = nextPage(found, limit)
      if (last === undefined || items.length >= limit) break
    }
    if (items.length > limit) return { items: items.slice(0, limit), next: items[limit - 1]?.id }
    return { items, next: last }
  }

  /** `own`: how many of those that are there is the record itself. */
  async #mustHaveRoom(record: AutomationRecord, own: 0 | 1 = 0): Promise<void> {
    const { storage, automationsBytesMax: bytesMax = LIMITS.automationsBytesMax } = this.#options
    const { active = 0, paused = 0, canceled: ended = 0 } = await storage.counts('automation', { owner: record.owner })
    if (active + paused - own >= AUTOMATIONS_MAX) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `There can be ${AUTOMATIONS_MAX} automations of one owner.`)
    }
    mustHaveSize(record, active + paused + ended - own, bytesMax)
  }

  /** What a definition names beside tools must be there. */
  async #mustKnow(definition: AutomationDefinition, owner: string): Promise<void> {
    await this.calendars.mustKnow(definition, owner)
    await this.hooks.mustKnow(definition, owner)
    await this.secrets.mustKnow(definition, owner)
  }

  async #read(id: string, actor: Actor): Promise<Stored<AutomationRecord>> {
    const stored = await this.#options.storage.read('automation', id)
    const found = stored === undefined ? undefined : asAutomation(stored)
    if (found === undefined || (!actor.isAdmin && found.value.owner !== actor.id)) {
      throw new ImpresarioError('NOT_FOUND', 'Automation not found')
    }
    return found
  }

  /** `decide` gives nothing when there is nothing to change. */
  async #change(
    id: string,
    actor: Actor,
    decide: (before: AutomationRecord, now: number) => Change | undefined | Promise<Change | undefined>,
  ): Promise<AutomationRecord> {
    const { storage } = this.#options
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const { value: before, version } = await this.#read(id, actor)
      const now = this.#now()
      const change = await decide(before, now)
      if (change === undefined) return before
      const record = { ...change.record, updatedAt: now, updatedBy: actor.id }
      const { put, drop } = await keyChange(storage, before, record, now)
      const whole = { ...change, record, put: [...(change.put ?? []), ...put], drop }
      const batch = this.#batch(before, whole, actor, version + 1)
      if ((await storage.commit(batch)) === 'conflict') continue
      await storage.sync()
      return record
    }
    throw tooManyConflicts()
  }

  #batch(before: AutomationRecord | undefined, change: Change, actor: Actor, version: number): Batch {
    const { record, action, details = {}, put = [], drop = [] } = change
    const { id, owner, next } = record
    const now = this.#now()
    const entry = { id: nearId(this.#options.random.id(), id), at: now, ...authorOf(actor), action, subject: id, owner }
    const firing: readonly Item[] = next === undefined ? [] : [firingItem(record, next.runAt - now)]
    const conditions = conditionChanges(before, record)
    return {
      put: [putAutomation(record, version), ...subscriptionsOf(record), ...put, putAudit({ ...entry, details })],
      enqueue: [...firing, ...conditions.enqueue],
      remove: [...(next === undefined ? [{ queue: 'firings', id } as const] : []), ...conditions.remove],
      ...(before === undefined
        ? {}
        : { drop: [...subscriptionIds(before).map((one) => ({ kind: 'subscription', id: one }) as const), ...drop] }),
    }
  }

  /** With the occurrence that comes next. One that was put off stays where it was put. */
  async #scheduled(record: AutomationRecord, now: number): Promise<AutomationRecord> {
    const { next: _, ...rest } = record
    if (record.status !== 'active') return rest
    if (record.snooze !== undefined) return record
    const restriction = await this.calendars.restrictionOf(record.definition, record.owner)
    const plan = planOf(record, now, this.zones, restriction)
    const next = plan?.runs[0] ?? plan?.next
    return next === undefined ? rest : { ...rest, next }
  }

  #pausedSkips(record: AutomationRecord, plan: MisfirePlan, now: number): readonly Put[] {
    const skips = plan.skips.map((skip) => (skip.reason === 'missed' ? { ...skip, reason: 'paused' as const } : skip))
    // What is due at this very moment belongs to the pause too.
    const due = plan.runs.map(
      ({ scheduledFor: at }) => ({ reason: 'paused', first: at, last: at, count: 1, isMore: false }) as const,
    )
    return skipEntries(record, [...skips, ...due], now, this.#options.random)
  }

  #now(): number {
    return wallTime(this.#options.clock)
  }
}

/** What decides when an automation runs. */
function timesOf({ triggers, misfire, jitterSeconds, calendars }: AutomationDefinition): readonly unknown[] {
  return [triggers.filter(({ kind }) => kind === 'time'), misfire, jitterSeconds, calendars]
}
