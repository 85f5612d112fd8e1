import { ImpresarioError } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { Zones } from '@impresario/recurrence'
import type { MisfirePolicy } from '@impresario/recurrence'
import { compilePipeline } from '../pipeline/compile.ts'
import type { ToolCheck } from '../pipeline/compile.ts'
import { Problems } from '../pipeline/problem.ts'
import { FieldReader, isObject } from '../pipeline/reader.ts'
import type { Pipeline } from '../pipeline/step.ts'
import { readMisfire, readTrigger, TRIGGER_LIMITS } from '../trigger/spec.ts'
import type { AutomationTrigger, TriggerContext } from '../trigger/spec.ts'
import { compileTemplate } from '../template/template.ts'

/** What becomes of a trigger while an earlier run is still open. */
export type Overlap = 'queue' | 'skip' | 'restart' | 'parallel'

/** What an automation may use in a day. `undefined`: without a limit. */
export interface Budget {
  readonly runsPerDay: number | undefined
  readonly usdPerDay: number | undefined
  readonly tokensPerDay: number | undefined
  readonly gpuSecondsPerDay: number | undefined
}

/** How a run that failed is repeated, as a new entry of the queue. */
export interface RunRetry {
  readonly maxRetries: number
  readonly backoff: 'exponential_jitter' | 'exponential' | 'linear' | 'fixed'
  readonly initialSeconds: number
  readonly maxSeconds: number
}

/** What an agent wants done, when, and how: checked, complete, and storable as JSON. */
export interface AutomationDefinition {
  /** By which files find it again, whatever its title becomes. */
  readonly key?: string | undefined
  readonly title: string
  readonly description: string
  readonly timezone: string
  readonly triggers: readonly AutomationTrigger[]
  readonly pipeline: Pipeline
  /** The pipeline as its author wrote it. */
  readonly source: readonly Data[]
  readonly params: DataObject
  /** 1 is the most important, 9 the least. */
  readonly priority: number
  readonly retry: RunRetry
  readonly overlap: Overlap
  readonly concurrency: { readonly key: string | undefined; readonly limit: number }
  /** Within the window a trigger with the same key starts no second run. The key is a template over the event. */
  readonly dedupe: { readonly key: string; readonly windowSeconds: number } | undefined
  readonly misfire: MisfirePolicy
  readonly jitterSeconds: number
  readonly calendars: { readonly exclude: readonly string[]; readonly only: readonly string[] }
  readonly budget: Budget
  readonly timeoutSeconds: number | undefined
}

export interface DefinitionContext {
  readonly tools: ToolCheck
  readonly zones?: Zones
  /** The zone of automations that name none. */
  readonly timezone: string
  readonly createdAt: number
}

const DEDUPE_SCOPE = ['params', 'event', 'now']

/** Reads a definition, or refuses it with everything that is wrong with it. */
export function readDefinition(value: unknown, context: DefinitionContext): AutomationDefinition {
  if (!isObject(value)) {
    throw new ImpresarioError('INPUT_REFUSED', 'An automation is an object with title, triggers and pipeline.')
  }
  const problems = new Problems()
  const fields = new FieldReader(value, '', problems)
  const zones = context.zones ?? new Zones()
  const timezone = fields.text('timezone', { max: 100 }) ?? context.timezone
  problems.try('timezone', undefined, () => zones.named(timezone))
  const triggerContext: TriggerContext = { ...context, problems, zones, timezone }
  const source = fields.list('pipeline') ?? fields.refuse('pipeline', 'Must be a list of steps; it may be empty.') ?? []
  const key = keyIn(fields)
  const definition = {
    ...(key === undefined ? {} : { key }),
    title: fields.text('title', { max: 200 }) ?? fields.refuse('title', 'Give it a title.') ?? '',
    description: fields.text('description', { max: 2_000 }) ?? '',
    timezone,
    triggers: triggersIn(fields, triggerContext),
    pipeline: compilePipeline(source, context.tools, problems) ?? { steps: [] },
    source,
    params: fields.object('params') ?? {},
    priority: fields.number('priority', { min: 1, max: 9, isWhole: true }) ?? 5,
    overlap: fields.oneOf('overlap', ['queue', 'skip', 'restart', 'parallel']) ?? 'queue',
    misfire: readMisfire(fields, 'misfire', problems),
    jitterSeconds: fields.number('jitter_seconds', { min: 0, max: 86_400 }) ?? 0,
    timeoutSeconds: fields.number('timeout_seconds', { min: 1, max: 31_536_000 }),
    ...policiesIn(fields, problems),
  }
  fields.end()
  problems.throwIfAny('The automation')
  return definition
}

const KEY = /^[A-Za-z0-9][\w.-]{0,99}$/

function keyIn(fields: FieldReader): string | undefined {
  const key = fields.text('key', { max: 100 })
  if (key === undefined || KEY.test(key)) return key
  fields.refuse('key', 'Must begin with a letter or a digit and have up to 100 letters, digits, "_", "." and "-".')
  return undefined
}

function triggersIn(fields: FieldReader, context: TriggerContext): readonly AutomationTrigger[] {
  const single = fields.raw('trigger')
  const all = fields.list('triggers') ?? (single === undefined ? [] : [single])
  if (all.length > TRIGGER_LIMITS.triggersMax) {
    fields.refuse('triggers', `There can be ${TRIGGER_LIMITS.triggersMax} triggers.`)
    return []
  }
  const read = all.flatMap((each, at) => readTrigger(each, `triggers[${at}]`, context) ?? [])
  return read.length === 0 ? [{ kind: 'manual' }] : read
}

type Policies = Pick<AutomationDefinition, 'retry' | 'concurrency' | 'dedupe' | 'calendars' | 'budget'>

function policiesIn(fields: FieldReader, problems: Problems): Policies {
  const inner = (key: string): FieldReader => new FieldReader(fields.object(key) ?? {}, fields.path(key), problems)
  const [retry, concurrency, calendars, budget] = [
    inner('retry'),
    inner('concurrency'),
    inner('calendars'),
    inner('budget'),
  ]
  const policies: Policies = {
    retry: {
      maxRetries: retry.number('max_retries', { min: 0, max: 10, isWhole: true }) ?? 3,
      backoff: retry.oneOf('backoff', ['exponential_jitter', 'exponential', 'linear', 'fixed']) ?? 'exponential_jitter',
      initialSeconds: retry.number('initial_seconds', { min: 0, max: 86_400 }) ?? 1,
      maxSeconds: retry.number('max_seconds', { min: 0, max: 604_800 }) ?? 3_600,
    },
    concurrency: {
      key: concurrency.text('key', { max: 100 }),
      limit: concurrency.number('limit', { min: 1, max: 1_000, isWhole: true }) ?? 1,
    },
    dedupe: dedupeIn(fields, problems),
    calendars: { exclude: namesIn(calendars, 'exclude'), only: namesIn(calendars, 'only') },
    budget: budgetIn(budget),
  }
  for (const each of [retry, concurrency, calendars, budget]) each.end()
  return policies
}

function budgetIn(fields: FieldReader): Budget {
  const most = { min: 0, max: 1e12 }
  return {
    runsPerDay: fields.number('runs_per_day', { ...most, isWhole: true }),
    usdPerDay: fields.number('usd_per_day', most),
    tokensPerDay: fields.number('tokens_per_day', most),
    gpuSecondsPerDay: fields.number('gpu_seconds_per_day', most),
  }
}

/** The budget of an agent, which has the fields of that of an automation; or everything that is wrong with it. */
export function readBudget(value: DataObject): Budget {
  const problems = new Problems()
  const fields = new FieldReader(value, 'budget', problems)
  const budget = budgetIn(fields)
  fields.end()
  problems.throwIfAny('The budget')
  return budget
}

function dedupeIn(fields: FieldReader, problems: Problems): AutomationDefinition['dedupe'] {
  const value = fields.object('dedupe')
  if (value === undefined) return undefined
  const inner = new FieldReader(value, fields.path('dedupe'), problems)
  const key = inner.text('key', { max: 500 }) ?? inner.refuse('key', 'Name the key; it may be a template.') ?? ''
  problems.try(inner.path('key'), undefined, () => compileTemplate(key, DEDUPE_SCOPE))
  const windowSeconds = inner.number('window_seconds', { min: 1, max: 31_536_000 }) ?? 3_600
  inner.end()
  return { key, windowSeconds }
}

function namesIn(fields: FieldReader, key: string): readonly string[] {
  const all = fields.list(key) ?? []
  const names = all.filter((each): each is string => typeof each === 'string' && each !== '')
  if (names.length !== all.length || names.length > 20 || names.some((name) => name.length > 100)) {
    fields.refuse(key, 'Must be a list of at most 20 names of calendars, each of at most 100 characters.')
  }
  return names
}
