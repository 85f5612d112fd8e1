import { isoInstant, jsonObjectCopy, jsonSize, storedCopy } from '@impresario/core'
import type { Item, Job, Put, Stored } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import type { Data, DataObject, JsonObject } from '@impresario/protocol'
import { compileExpression } from '../expression/expression.ts'
import { CLEAR, observe } from '../trigger/edge.ts'
import type { EdgeState, EdgeStep } from '../trigger/edge.ts'
import type { ConditionTrigger } from '../trigger/spec.ts'
import { jobPriority } from './record.ts'
import type { AutomationRecord } from './record.ts'

/** How a condition trigger of an automation stands. Times are milliseconds since 1970. */
export interface ConditionRecord {
  readonly automationId: string
  readonly owner: string
  /** Its place among the triggers. */
  readonly at: number
  /** The trigger that this belongs to: another one in its place starts clear. */
  readonly source: string
  readonly edge: EdgeState
  /** What was seen last: the values that the expression reads, and what came of it. */
  readonly seen?: Seen
  /** When it was raised or cleared last. */
  readonly crossing?: { readonly at: number; readonly to: 'raised' | 'clear' }
  /** The run that was asked for last. */
  readonly fired?: { readonly at: number; readonly runId: string }
  /** The job that calls the tool, while one is open. */
  readonly probe?: { readonly jobId: string; readonly startedAt: number }
}

interface Seen {
  readonly at: number
  readonly values: DataObject
  readonly holds: boolean | null
  readonly error?: string
}

const SEEN_BYTES_MAX = 4_096
const ERROR_CHARS_MAX = 500
const SCOPE = ['output', 'params', 'now']

export function conditionId(automationId: string, at: number): string {
  return `${automationId}.${at}`
}

export function putCondition(record: ConditionRecord, version: number): Put {
  const { automationId, owner, at, edge } = record
  return {
    kind: 'condition',
    id: conditionId(automationId, at),
    value: jsonObjectCopy(record, 'The condition'),
    version,
    facets: { owner, name: automationId, status: edge.phase },
  }
}

/** Boundary: only `putCondition` has written it. */
function asCondition(value: JsonObject): ConditionRecord {
  return storedCopy(value) as unknown as ConditionRecord
}

export function conditionsOf({ definition }: Pick<AutomationRecord, 'definition'>): readonly NamedCondition[] {
  return definition.triggers.flatMap((trigger, at) => (trigger.kind === 'condition' ? [{ at, trigger }] : []))
}

export interface NamedCondition {
  readonly at: number
  readonly trigger: ConditionTrigger
}

/** The stored state, or a clear one where there is none or another trigger left it. */
export function conditionFrom(
  stored: Stored<JsonObject> | undefined,
  { id, owner }: Pick<AutomationRecord, 'id' | 'owner'>,
  { at, trigger }: NamedCondition,
): Stored<ConditionRecord> {
  const source = JSON.stringify(trigger)
  const known = stored === undefined ? undefined : asCondition(stored.value)
  const version = stored?.version ?? 0
  if (known?.source === source) return { value: known, version }
  return { value: { automationId: id, owner, at, source, edge: CLEAR }, version }
}

/** What was seen: what a tool gave or an outside system reported, or why there is nothing. */
export type Sight = { readonly output: Data } | { readonly error: string }

export interface Evaluated {
  readonly record: ConditionRecord
  readonly outcome: EdgeStep['outcome']
}

/** What one look makes of a condition. One that cannot be computed changes nothing but what is seen of it. */
export function evaluated(
  before: ConditionRecord,
  trigger: ConditionTrigger,
  params: DataObject,
  sight: Sight,
  now: number,
): Evaluated {
  const { seen, isOver } = lookedAt(trigger, params, sight, now)
  const policy = { forMs: trigger.forSeconds * 1_000, cooldownMs: trigger.cooldownSeconds * 1_000 }
  const step = observe(before.edge, { at: now, holds: seen.holds ?? undefined, isOver }, policy)
  return { record: crossed({ ...before, seen }, step.state, now), outcome: step.outcome }
}

/** What the passing of time makes of it: the value that was reported last still holds. */
export function elapsed(before: ConditionRecord, trigger: ConditionTrigger, now: number): Evaluated {
  if (before.edge.phase !== 'pending') return { record: before, outcome: 'quiet' }
  const policy = { forMs: trigger.forSeconds * 1_000, cooldownMs: trigger.cooldownSeconds * 1_000 }
  const step = observe(before.edge, { at: now, holds: true, isOver: false }, policy)
  return { record: crossed(before, step.state, now), outcome: step.outcome }
}

function crossed(record: ConditionRecord, edge: EdgeState, at: number): ConditionRecord {
  const { phase: before } = record.edge
  const whole = { ...record, edge }
  if (edge.phase === 'raised' && before !== 'raised') return { ...whole, crossing: { at, to: 'raised' } }
  return before === 'raised' && edge.phase === 'clear' ? { ...whole, crossing: { at, to: 'clear' } } : whole
}

function lookedAt(
  { expression: source, reset }: ConditionTrigger,
  params: DataObject,
  sight: Sight,
  at: number,
): { readonly seen: Seen; readonly isOver: boolean } {
  if ('error' in sight) return { seen: failed(at, {}, sight.error), isOver: false }
  const scope = { output: sight.output, params, now: isoInstant(at) }
  let values: DataObject = {}
  try {
    const expression = compileExpression(source, SCOPE)
    values = bounded(
      Object.fromEntries(
        expression.paths.map((path): [string, Data] => {
          const name = path.join('.')
          return [name, (compileExpression(name, SCOPE).evaluate(scope) ?? null) as Data]
        }),
      ),
    )
    const holds = expression.judge(scope)
    const isOver = reset === undefined ? !holds : compileExpression(reset, SCOPE).judge(scope)
    return { seen: { at, values, holds }, isOver }
  } catch (error) {
    if (!isImpresarioError(error)) throw error
    return { seen: failed(at, values, error.message), isOver: false }
  }
}

function failed(at: number, values: DataObject, error: string): Seen {
  return { at, values, holds: null, error: error.slice(0, ERROR_CHARS_MAX) }
}

function bounded(values: DataObject): DataObject {
  const bytes = jsonSize(jsonObjectCopy(values, 'The values'))
  return bytes <= SEEN_BYTES_MAX ? values : { note: `${bytes} bytes were read, which are too many to be shown.` }
}

/** The next call of the tool of a condition, as it stands in the queue. */
export function probeItem(record: AutomationRecord, at: number, delayMs: number): Item {
  return conditionItem('probe', record, at, delayMs)
}

/** The moment when a reported condition has held long enough. */
export function holdItem(record: AutomationRecord, at: number, delayMs: number): Item {
  return conditionItem('hold', record, at, delayMs)
}

function conditionItem(kind: 'probe' | 'hold', record: AutomationRecord, at: number, delayMs: number): Item {
  return {
    queue: 'firings',
    id: conditionItemId(kind, record.id, at),
    lane: record.owner,
    priority: jobPriority(record.definition),
    delayMs: Math.max(0, Math.ceil(delayMs)),
    payload: { kind, automationId: record.id, at },
  }
}

function conditionItemId(kind: 'probe' | 'hold', automationId: string, at: number): string {
  return `${conditionId(automationId, at)}.${kind}`
}

/** The items of conditions that a change puts into the queue, and those that it takes out. */
export function conditionChanges(
  before: AutomationRecord | undefined,
  after: AutomationRecord,
): { readonly enqueue: readonly Item[]; readonly remove: readonly { queue: 'firings'; id: string }[] } {
  const [old, wanted] = [before === undefined ? [] : active(before), active(after)]
  if (JSON.stringify(old) === JSON.stringify(wanted)) return { enqueue: [], remove: [] }
  return {
    enqueue: wanted.flatMap(({ at, trigger }) => (trigger.tool === undefined ? [] : [probeItem(after, at, 0)])),
    remove: before === undefined ? [] : conditionItemIds(before),
  }
}

function active(record: AutomationRecord): readonly NamedCondition[] {
  return record.status === 'active' ? conditionsOf(record) : []
}

export function conditionItemIds(record: AutomationRecord): readonly { queue: 'firings'; id: string }[] {
  return conditionsOf(record).flatMap(({ at }) =>
    (['probe', 'hold'] as const).map((kind) => ({ queue: 'firings', id: conditionItemId(kind, record.id, at) })),
  )
}

const PROBE = 'probe'

/** What the job of a probe is marked with, so that its end calls the item that waits for it. */
export function probeMark(automationId: string, at: number): JsonObject {
  return { automation: automationId, [PROBE]: conditionItemId('probe', automationId, at) }
}

/** The item that waits for the end of this job. */
export function probeItemOf({ metadata }: Pick<Job, 'metadata'>): string | undefined {
  const item = metadata?.[PROBE]
  return typeof item === 'string' && metadata?.['automation'] !== undefined ? item : undefined
}
