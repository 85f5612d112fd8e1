import { jsonObjectCopy, sha256, storedCopy } from '@impresario/core'
import type { Item, Put, Stored } from '@impresario/core'
import type { DataObject, JsonObject } from '@impresario/protocol'
import type { AutomationDefinition } from '../automation/definition.ts'
import type { AutomationTrigger } from '../trigger/spec.ts'
import { topicPattern } from '../trigger/topic.ts'

export const AUTOMATION_STATUSES = ['active', 'paused', 'canceled'] as const
export type AutomationStatus = (typeof AUTOMATION_STATUSES)[number]

/** The next run was put off. */
interface Snooze {
  /** The occurrence that was put off. */
  readonly scheduledFor: number
  readonly until: number
  readonly by: string
  readonly reason: string | undefined
  readonly at: number
}

/** A standing order and how it stands. Times are milliseconds since 1970. */
export interface AutomationRecord {
  readonly id: string
  readonly owner: string
  readonly status: AutomationStatus
  /** Counts the changes of its definition. */
  readonly revision: number
  /** As it was written. */
  readonly given: DataObject
  readonly definition: AutomationDefinition
  /** What clients of the old interface said beside it. Only they see it, until the definition is replaced by others. */
  readonly extra?: DataObject
  readonly createdAt: number
  readonly createdBy: string
  readonly updatedAt: number
  readonly updatedBy: string
  /** All occurrences up to here have a run or a logged skip. */
  readonly handledUpTo: number
  /** The occurrence that stands in the queue. */
  readonly next?: { readonly scheduledFor: number; readonly runAt: number }
  readonly snooze?: Snooze
  /** Occurrences that are made good are spread up to here. */
  readonly catchUpUntil?: number
}

/** Boundary: only `putAutomation` has written it. */
export function asAutomation({ value, version }: Stored<JsonObject>): Stored<AutomationRecord> {
  return { value: storedCopy(value) as unknown as AutomationRecord, version }
}

export function putAutomation(record: AutomationRecord, version: number): Put {
  const { id, owner, status, definition } = record
  return {
    kind: 'automation',
    id,
    value: jsonObjectCopy(record, 'The automation'),
    version,
    facets: { owner, status, text: `${id} ${definition.title}` },
  }
}

/** The next firing of an automation, as it stands in the queue. */
export function firingItem({ id, owner, definition }: AutomationRecord, inMs: number): Item {
  const delayMs = Math.min(Math.max(0, Math.ceil(inMs)), DELAY_MS_MAX)
  return { queue: 'firings', id, lane: owner, priority: jobPriority(definition), delayMs, payload: { kind: 'fire' } }
}

/** Nothing waits longer without a look at the clock: it may have been set. */
const DELAY_MS_MAX = 86_400_000

/** Ours grow with importance, and those of automations fall: 1 is the most important one, 5 the usual one. */
export function jobPriority({ priority }: Pick<AutomationDefinition, 'priority'>): number {
  return 5 - priority
}

/** So that no owner and name together read like those of another. */
export function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('/', '%2F')
}

/** One event trigger of an automation. */
export interface Subscription {
  readonly automationId: string
  readonly owner: string
  readonly topic: string
  readonly filter: string | undefined
}

/** Boundary: only `subscriptionsOf` has written it. */
export function asSubscription(value: JsonObject): Subscription {
  return storedCopy(value) as unknown as Subscription
}

/** What listens for the automation. Each lies under the part of its topic that has no wildcard, so that an event finds it. */
export function subscriptionsOf(record: AutomationRecord): readonly Put[] {
  const { id, owner, status } = record
  if (status === 'canceled') return []
  const calendars = calendarsIn(record).map((name): Put => {
    const value = jsonObjectCopy({ automationId: id, owner, calendar: name }, 'The use of a calendar')
    const facets = { owner, name: calendarBucket(name) }
    return { kind: 'subscription', id: calendarUseId(id, name), value, version: 1, facets }
  })
  return status === 'active' ? [...calendars, ...eventSubscriptions(record)] : calendars
}

function eventSubscriptions({ id, owner, definition }: AutomationRecord): readonly Put[] {
  return definition.triggers.flatMap((trigger, at): readonly Put[] => {
    if (trigger.kind !== 'event' && trigger.kind !== 'webhook') return []
    const { filter } = trigger
    const topic = trigger.kind === 'event' ? trigger.topic : '#'
    const value = jsonObjectCopy({ automationId: id, owner, topic, filter }, 'The trigger')
    const name = trigger.kind === 'event' ? bucketOf(topic) : hookBucket(trigger.source)
    return [{ kind: 'subscription', id: subscriptionId(id, at), value, version: 1, facets: { owner, name } }]
  })
}

export function subscriptionIds(record: AutomationRecord): readonly string[] {
  const { id, definition } = record
  return [
    ...calendarsIn(record).map((name) => calendarUseId(id, name)),
    ...definition.triggers.flatMap(({ kind }, at) => (isHeard(kind) ? [subscriptionId(id, at)] : [])),
  ]
}

function isHeard(kind: AutomationTrigger['kind']): boolean {
  return kind === 'event' || kind === 'webhook'
}

function calendarsIn({ definition: { calendars } }: AutomationRecord): readonly string[] {
  return [...new Set([...calendars.exclude, ...calendars.only])]
}

function calendarUseId(automationId: string, name: string): string {
  return `${automationId}.calendar.${name}`
}

/** Where the automations are found that use a calendar. */
export function calendarBucket(name: string): string {
  return `calendar/${name}`
}

function subscriptionId(automationId: string, at: number): string {
  return `${automationId}.${at}`
}

function bucketOf(topic: string): string {
  if (topicPattern(topic).isExact) return `=${topic}`
  const segments = topic.split('.')
  return `~${segments
    .slice(
      0,
      segments.findIndex((segment) => segment === '*' || segment === '#'),
    )
    .join('.')}`
}

/** Every bucket that may hold a trigger for this topic. */
export function bucketsFor(topic: string): readonly string[] {
  const segments = topic.split('.')
  return [
    `=${topic}`,
    ...Array.from({ length: segments.length + 1 }, (_, count) => `~${segments.slice(0, count).join('.')}`),
  ]
}

/** Where the triggers are found that listen to a source of webhooks. */
export function hookBucket(source: string): string {
  return `hook/${source}`
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

export function isUuid(id: string): boolean {
  return UUID.test(id)
}

/** An id that ends like that of an automation: a storage that spreads its data keeps both in one place. */
export function nearId(id: string, automationId: string): string {
  return UUID.test(id) && UUID.test(automationId) ? `${id.slice(0, -4)}${automationId.slice(-4)}` : id
}

/** The same id for the same words, as old as `at`, near the automation. */
export function derivedId(at: number, words: string, automationId: string): string {
  const time = Math.floor(at).toString(16).padStart(12, '0').slice(-12)
  const hash = sha256(words)
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`
  return nearId(id, automationId)
}

/** The time that an id of ours begins with. */
export function timeOfId(id: string): number | undefined {
  return UUID.test(id) ? Number.parseInt(`${id.slice(0, 8)}${id.slice(9, 13)}`, 16) : undefined
}

/** Ids begin with their time in milliseconds. The first twelve digits sort before every id of theirs. */
export function firstIdAt(ms: number): string {
  const hex = Math.max(0, Math.ceil(ms)).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
