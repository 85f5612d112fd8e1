import type { Data, DataObject } from '@impresario/protocol'
import { trigger, withImpliedStart } from '@impresario/recurrence'
import type { MisfirePolicy, Trigger, TriggerSpec, Zones } from '@impresario/recurrence'
import { compileExpression } from '../expression/expression.ts'
import { compilePipeline } from '../pipeline/compile.ts'
import type { ToolCheck } from '../pipeline/compile.ts'
import { Problems } from '../pipeline/problem.ts'
import { FieldReader, isObject } from '../pipeline/reader.ts'
import { topicPattern } from './topic.ts'

/** What a trigger's own expressions can read. */
const EVENT_SCOPE = ['event', 'params', 'now']
const CONDITION_SCOPE = ['output', 'params', 'now']

/** When an automation runs. Checked; can be stored as JSON. */
export type AutomationTrigger =
  | { readonly kind: 'time'; readonly spec: TriggerSpec }
  | { readonly kind: 'event'; readonly topic: string; readonly filter: string | undefined }
  | ConditionTrigger
  | { readonly kind: 'webhook'; readonly source: string; readonly filter: string | undefined }
  | { readonly kind: 'manual' }

/** A condition over a tool's output at an interval; without a tool over values that an outside system reports. */
export interface ConditionTrigger {
  readonly kind: 'condition'
  readonly expression: string
  /** With hysteresis: the condition is over when this holds. */
  readonly reset: string | undefined
  readonly tool: { readonly uses: string; readonly with: DataObject; readonly everySeconds: number } | undefined
  readonly forSeconds: number
  readonly cooldownSeconds: number
}

export const TRIGGER_LIMITS = {
  triggersMax: 20,
  everySecondsMin: 5,
  everySecondsMax: 604_800,
  holdSecondsMax: 2_592_000,
} as const

export interface TriggerContext {
  readonly problems: Problems
  readonly zones: Zones
  readonly tools: ToolCheck
  /** The zone of triggers that name none. */
  readonly timezone: string
  /** When the automation is created: where a rule without DTSTART begins. */
  readonly createdAt: number
}

const KINDS = ['cron', 'rrule', 'once', 'every', 'event', 'condition', 'webhook', 'manual'] as const

/** Reads one trigger, such as `{"cron": "0 9 * * 1-5"}` or `{"kind": "event", "topic": "github.push"}`. */
export function readTrigger(value: Data, path: string, context: TriggerContext): AutomationTrigger | undefined {
  const { problems } = context
  if (!isObject(value)) {
    problems.add(path, 'Must be an object such as {"cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}.')
    return undefined
  }
  const fields = new FieldReader(value, path, problems)
  const kind = fields.oneOf('kind', KINDS) ?? KINDS.find((each) => each !== 'webhook' && value[each] !== undefined)
  if (kind === undefined) return fields.refuse('kind', `Must be one of ${KINDS.join(', ')}.`)
  const read = READERS[kind](fields, context)
  fields.end()
  return read
}

type Reader = (fields: FieldReader, context: TriggerContext) => AutomationTrigger | undefined

const READERS: Readonly<Record<(typeof KINDS)[number], Reader>> = {
  cron: (fields, context) => {
    const cron = fields.text('cron', { max: 1_000 }) ?? fields.refuse('cron', 'Write it as "0 9 * * 1-5".')
    const timezone = zoneIn(fields, context)
    return cron === undefined ? undefined : timed(fields, 'cron', { kind: 'cron', cron, timezone }, context)
  },
  rrule: (fields, context) => {
    const rrule = fields.text('rrule', { max: 4_000 }) ?? fields.refuse('rrule', 'Write it as "FREQ=DAILY;BYHOUR=9".')
    const timezone = zoneIn(fields, context)
    const dtstart = fields.text('dtstart', { max: 40 })
    const [exdates, rdates] = [datesIn(fields, 'exdate'), datesIn(fields, 'rdate')]
    if (rrule === undefined) return undefined
    const anchored = context.problems.try(fields.path('rrule'), undefined, () =>
      dtstart === undefined
        ? withImpliedStart(rrule, context.createdAt, context.zones.named(timezone))
        : { rrule, dtstart },
    )
    if (anchored === undefined) return undefined
    return timed(fields, 'rrule', { kind: 'rrule', timezone, ...anchored, exdates, rdates }, context)
  },
  once: (fields, context) => {
    const at = fields.text('once', { max: 40 }) ?? fields.text('at', { max: 40 }) ?? fields.refuse('once', 'Say when.')
    const timezone = zoneIn(fields, context)
    return at === undefined ? undefined : timed(fields, 'once', { kind: 'once', at, timezone }, context)
  },
  every: (fields, context) => {
    const seconds =
      fields.number('every', { min: 1, max: 31_536_000, isWhole: true }) ?? fields.refuse('every', 'Say how often.')
    const timezone = zoneIn(fields, context)
    if (seconds === undefined) return undefined
    return timed(
      fields,
      'every',
      { kind: 'every', everyMs: seconds * 1_000, anchor: context.createdAt, timezone },
      context,
    )
  },
  event: (fields, context) => {
    const topic = fields.text('event', { max: 200 }) ?? fields.text('topic', { max: 200 })
    const filter = filterIn(fields, context)
    if (topic === undefined) return fields.refuse('topic', 'Name the topic, such as github.push or github.*.')
    context.problems.try(fields.path('topic'), undefined, () => topicPattern(topic))
    return { kind: 'event', topic, filter }
  },
  webhook: (fields, context) => {
    const source = fields.text('source', { max: 100 }) ?? fields.refuse('source', 'Name the webhook source.')
    const filter = filterIn(fields, context)
    return source === undefined ? undefined : { kind: 'webhook', source, filter }
  },
  condition: readCondition,
  manual: (fields) => {
    fields.raw('manual')
    return { kind: 'manual' }
  },
}

function zoneIn(fields: FieldReader, context: TriggerContext): string {
  const name = fields.text('timezone', { max: 100 }) ?? context.timezone
  const zone = context.problems.try(fields.path('timezone'), undefined, () => context.zones.named(name))
  return zone?.name ?? 'UTC'
}

function datesIn(fields: FieldReader, key: string): readonly string[] | undefined {
  const value = fields.raw(key)
  if (value === undefined) return undefined
  const all = Array.isArray(value) ? (value as readonly Data[]) : [value]
  const dates = all.filter((each): each is string => typeof each === 'string')
  return dates.length === all.length ? dates : fields.refuse(key, 'Must be a time or a list of times.')
}

/** A time trigger must be one that can fire. */
function timed(
  fields: FieldReader,
  key: string,
  spec: TriggerSpec,
  context: TriggerContext,
): AutomationTrigger | undefined {
  const compiled = context.problems.try(fields.path(key), undefined, () => trigger(spec, context.zones))
  if (compiled === undefined) return undefined
  if (spec.kind !== 'once' && compiled.series.next(context.createdAt) === undefined) {
    return fields.refuse(key, 'It never fires after now.')
  }
  return { kind: 'time', spec }
}

function filterIn(fields: FieldReader, context: TriggerContext): string | undefined {
  const filter = fields.text('filter', { max: 2_000 })
  if (filter === undefined) return undefined
  context.problems.try(fields.path('filter'), undefined, () => compileExpression(filter, EVENT_SCOPE))
  return filter
}

function readCondition(fields: FieldReader, context: TriggerContext): ConditionTrigger | undefined {
  const expression = fields.text('condition', { max: 2_000 }) ?? fields.text('expression', { max: 2_000 })
  const reset = fields.text('reset', { max: 2_000 })
  const uses = fields.text('uses', { max: 200 })
  const inputs = fields.object('with') ?? {}
  const { everySecondsMin: min, everySecondsMax: max, holdSecondsMax } = TRIGGER_LIMITS
  const everySeconds = fields.number('every_seconds', { min, max }) ?? 60
  const forSeconds = fields.number('for_seconds', { min: 0, max: holdSecondsMax }) ?? 0
  const cooldownSeconds = fields.number('cooldown_seconds', { min: 0, max: holdSecondsMax }) ?? 0
  if (expression === undefined) {
    return fields.refuse('expression', 'Write the condition, such as output.free_percent < 10.')
  }
  for (const [key, source] of Object.entries({ expression, reset })) {
    if (source === undefined) continue
    context.problems.try(fields.path(key), undefined, () => compileExpression(source, CONDITION_SCOPE))
  }
  if (uses !== undefined) checkCall(fields, { id: 'probe', uses, with: inputs }, context)
  const tool = uses === undefined ? undefined : { uses, with: inputs, everySeconds }
  return { kind: 'condition', expression, reset, tool, forSeconds, cooldownSeconds }
}

/** The call of a tool is checked like a step of a pipeline. */
function checkCall(fields: FieldReader, step: DataObject, { tools }: TriggerContext): void {
  const found = new Problems()
  compilePipeline([step], tools, found, '')
  for (const { field, message } of found.list) fields.refuse(field.replace(/^\[0\]\.?/, '') || 'uses', message)
}

/** The triggers that fire by the clock, ready to be asked. */
export function timeTriggers(triggers: readonly AutomationTrigger[], zones: Zones): readonly Trigger[] {
  return triggers.flatMap((each) => (each.kind === 'time' ? [trigger(each.spec, zones)] : []))
}

/** Reads what becomes of firings that were missed: `"skip"`, `"run_once"` or `{"catch_up": {"max": 10}}`. */
export function readMisfire(fields: FieldReader, key: string, problems: Problems): MisfirePolicy {
  const value = fields.raw(key)
  if (value === undefined || value === 'run_once') return { kind: 'run_once' }
  if (value === 'skip') return { kind: 'skip' }
  const given = value === 'catch_up' ? {} : isObject(value) ? value['catch_up'] : undefined
  if (!isObject(given)) {
    fields.refuse(key, 'Must be "skip", "run_once" or {"catch_up": {"max": 10, "spread_seconds": 60}}.')
    return { kind: 'run_once' }
  }
  const inner = new FieldReader(given, `${fields.path(key)}.catch_up`, problems)
  const max = inner.number('max', { min: 1, max: 1_000, isWhole: true }) ?? 10
  const spread = inner.number('spread_seconds', { min: 0, max: 86_400 }) ?? 0
  inner.end()
  return { kind: 'catch_up', max, spreadMs: spread * 1_000 }
}
