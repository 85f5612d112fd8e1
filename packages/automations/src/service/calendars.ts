import { jsonObjectCopy, jsonSize, nextPage, storedCopy, wallTime } from '@impresario/core'
import type { Clock, Item, Lease, Put, Random, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { DataObject, JsonObject } from '@impresario/protocol'
import { calendar } from '@impresario/recurrence'
import type { Calendar, CalendarSpec, Restriction, Zone, Zones } from '@impresario/recurrence'
import type { AutomationDefinition } from '../automation/definition.ts'
import { refused } from '../pipeline/problem.ts'
import { putAudit } from './audit.ts'
import type { Actor } from './audit.ts'
import type { Page } from './automations.ts'
import { readCalendar } from './calendar-spec.ts'
import { asAutomation, asSubscription, calendarBucket, escaped, firingItem } from './record.ts'

/** A named calendar of an owner. */
export interface CalendarRecord {
  readonly name: string
  readonly owner: string
  readonly description: string
  readonly spec: CalendarSpec
  readonly updatedAt: number
  readonly updatedBy: string
}

export interface CalendarsOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly zones: Zones
}

/** What one calendar may be, as it is stored. */
const CALENDAR_BYTES_MAX = 262_144
const CALENDARS_MAX = 1_000
const CONFLICTS_MAX = 20
const COMPILED_MAX = 200
/** What they are compiled from, together. Compiled, each takes about ten times as much. */
const COMPILED_BYTES_MAX = 4_194_304
/** Automations that are planned again in one commit. */
const PAGE = 100

/**
 * Named calendars, for the automations of their owner. A change reaches the automations that use a calendar through an item
 * of the queue `firings`: each of them is planned again, a page at a time.
 */
export class Calendars {
  readonly #options: CalendarsOptions
  readonly #compiled = new Map<string, { readonly calendar: Calendar; readonly bytes: number }>()
  #compiledBytes = 0
  readonly served: Readonly<Record<string, (lease: Lease) => Promise<void>>>

  constructor(options: CalendarsOptions) {
    this.#options = options
    this.served = { replan: (lease) => this.#replan(lease) }
  }

  /** Creates it, or takes the place of the one of this name. Also says what of an iCalendar file could not be read. */
  async put(
    name: string,
    body: DataObject,
    actor: Actor,
  ): Promise<{ readonly record: CalendarRecord; readonly unread: readonly string[] }> {
    const { storage, clock, zones } = this.#options
    const { spec, description, unread } = readCalendar(name, body, zones)
    const id = calendarId(actor.id, name)
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const known = await storage.read('calendar', id)
      if (known === undefined) await this.#mustHaveRoom(actor)
      const at = wallTime(clock)
      const record: CalendarRecord = { name, owner: actor.id, description, spec, updatedAt: at, updatedBy: actor.id }
      const action = known === undefined ? 'calendar.created' : 'calendar.updated'
      const put = [putCalendar(record, (known?.version ?? 0) + 1), this.#audit(record, action, actor.id)]
      if ((await storage.commit({ put, enqueue: [replanItem(record, undefined)] })) === 'conflict') continue
      await storage.sync()
      return { record, unread }
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The calendar could not be written: others changed it.')
  }

  async read(name: string, actor: Actor): Promise<CalendarRecord> {
    const stored = await this.#options.storage.read('calendar', calendarId(actor.id, name))
    if (stored === undefined) throw new ImpresarioError('NOT_FOUND', 'Calendar not found')
    return asCalendar(stored.value)
  }

  async list(owner: string | undefined, limit: number, before?: string): Promise<Page<CalendarRecord>> {
    const query = { limit, ...(owner === undefined ? {} : { owner }), ...(before === undefined ? {} : { before }) }
    const found = await this.#options.storage.list('calendar', { ...query, bytesMax: 1_048_576 })
    return { items: found.map(({ value }) => asCalendar(value)), next: nextPage(found, limit) }
  }

  /** Only one that no automation uses. */
  async remove(name: string, actor: Actor): Promise<void> {
    const { storage } = this.#options
    const record = await this.read(name, actor)
    const [user] = await storage.list('subscription', { owner: actor.id, name: calendarBucket(name), limit: 1 })
    if (user !== undefined) {
      const { automationId } = asSubscription(user.value)
      throw new ImpresarioError('CONFLICT', `The automation ${automationId} uses this calendar. Change it first.`)
    }
    const put = [this.#audit(record, 'calendar.deleted', actor.id)]
    await storage.commit({ put, drop: [{ kind: 'calendar', id: calendarId(actor.id, name) }] })
    await storage.sync()
  }

  /** Refuses a definition that names a calendar which is not there. */
  async mustKnow({ calendars }: AutomationDefinition, owner: string): Promise<void> {
    for (const name of [...calendars.exclude, ...calendars.only]) {
      if ((await this.#options.storage.read('calendar', calendarId(owner, name))) !== undefined) continue
      throw refused('calendars', `There is no calendar "${name}". Create it first.`)
    }
  }

  /** When an automation may run. A calendar that is gone counts as one without days. */
  async restrictionOf({ calendars, timezone }: AutomationDefinition, owner: string): Promise<Restriction> {
    const zone = this.#options.zones.named(timezone)
    const all = (names: readonly string[]): Promise<readonly Calendar[]> =>
      Promise.all(names.map((name) => this.#calendar(name, owner, zone)))
    return { exclude: await all(calendars.exclude), only: await all(calendars.only) }
  }

  async #calendar(name: string, owner: string, zone: Zone): Promise<Calendar> {
    const id = calendarId(owner, name)
    const stored = await this.#options.storage.read('calendar', id)
    if (stored === undefined) return { name, at: () => undefined, next: () => undefined }
    const key = `${id} ${stored.version} ${asCalendar(stored.value).updatedAt} ${zone.name}`
    const known = this.#compiled.get(key)
    if (known !== undefined) return known.calendar
    const compiled = calendar(asCalendar(stored.value).spec, this.#options.zones, zone)
    const bytes = jsonSize(stored.value)
    this.#compiled.set(key, { calendar: compiled, bytes })
    this.#compiledBytes += bytes
    for (const [oldest, { bytes: freed }] of this.#compiled) {
      if (this.#compiled.size <= COMPILED_MAX && this.#compiledBytes <= COMPILED_BYTES_MAX) break
      this.#compiled.delete(oldest)
      this.#compiledBytes -= freed
    }
    return compiled
  }

  /** Looks at a page of the automations that use a calendar, and lets each be planned again. */
  async #replan(lease: Lease): Promise<void> {
    const { storage } = this.#options
    const { owner, name, before } = replanOf(lease)
    const query = { owner, name: calendarBucket(name), limit: PAGE, ...(before === undefined ? {} : { before }) }
    const found = await storage.list('subscription', query)
    const ids = new Set(found.map(({ value }) => asSubscription(value).automationId))
    const firings: Item[] = []
    // One after another: a page of the largest ones would be a hundred megabytes.
    for (const id of ids) {
      const stored = await storage.read('automation', id)
      const user = stored === undefined ? undefined : asAutomation(stored).value
      if (user?.status === 'active') firings.push(firingItem(user, 0))
    }
    const next = nextPage(found, PAGE)
    const rest = next === undefined ? [] : [replanItem({ owner, name }, next)]
    await storage.commit({ settle: lease, enqueue: [...firings, ...rest] })
  }

  async #mustHaveRoom({ id }: Actor): Promise<void> {
    const { current = 0 } = await this.#options.storage.counts('calendar', { owner: id })
    if (current >= CALENDARS_MAX) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `There can be ${CALENDARS_MAX} calendars of one owner.`)
    }
  }

  #audit({ name, owner }: CalendarRecord, action: string, actor: string): Put {
    const { random, clock } = this.#options
    const subject = `calendar/${name}`
    return putAudit({ id: random.id(), at: wallTime(clock), actor, action, subject, owner, details: {} })
  }
}

function calendarId(owner: string, name: string): string {
  return `${escaped(owner)}/${name}`
}

function putCalendar(record: CalendarRecord, version: number): Put {
  const { owner, name } = record
  const value = jsonObjectCopy(record, 'The calendar')
  const bytes = jsonSize(value)
  if (bytes > CALENDAR_BYTES_MAX) {
    throw new ImpresarioError('LIMIT_EXCEEDED', `The calendar has ${bytes} bytes; ${CALENDAR_BYTES_MAX} are allowed.`)
  }
  return { kind: 'calendar', id: calendarId(owner, name), value, version, facets: { owner, name, status: 'current' } }
}

/** Boundary: only `putCalendar` has written it. */
function asCalendar(value: JsonObject): CalendarRecord {
  return storedCopy(value) as unknown as CalendarRecord
}

interface Replan {
  readonly owner: string
  readonly name: string
  readonly before: string | undefined
}

function replanItem({ owner, name }: Pick<CalendarRecord, 'owner' | 'name'>, before: string | undefined): Item {
  const payload = { kind: 'replan', owner, name, ...(before === undefined ? {} : { before }) }
  return { queue: 'firings', id: `calendar/${calendarId(owner, name)}`, lane: owner, priority: 0, delayMs: 0, payload }
}

/** Boundary: only `replanItem` has written it. */
function replanOf({ payload }: Lease): Replan {
  return payload as unknown as Replan
}
