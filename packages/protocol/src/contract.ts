import { ImpresarioError } from './errors.ts'
import { checkPart, checkSchema } from './exact/check-schema.ts'
import { LIMITS } from './limits.ts'
import { chain } from './soon.ts'
import type { Soon } from './soon.ts'
import type { ResourceRequirements } from './task.ts'

// ── Schemas ──────────────────────────────────────────────────────────────────

/** The Standard Schema interface (v1), which zod, valibot, arktype and others implement. Declared here: no dependency. */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The input of a schema. */
export type SchemaInput<S> = S extends Schema<infer Input, infer _Output> ? Input : never
/** The output of a schema. */
export type SchemaOutput<S> = S extends Schema<infer _Input, infer Output> ? Output : never

export type Validated<T> = { readonly value: T } | { readonly problems: readonly string[] }

/** Returns the schema's output for the value, or the problems, one sentence each. */
export function validate<Output>(schema: Schema<unknown, Output>, value: unknown): Soon<Validated<Output>> {
  return chain(checkSchema(schema, value), (result) =>
    result.issues === undefined ? { value: result.value } : { problems: result.issues.map(sentenceOf) },
  )
}

/** The problems with the keys that an object has, one sentence each. Missing keys are not a problem yet. */
export async function partProblems(schema: Schema, value: object): Promise<readonly string[]> {
  return (await checkPart(schema, value)).map(sentenceOf)
}

function sentenceOf(issue: SchemaIssue): string {
  const keys = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part))
  return keys.length === 0 ? issue.message : `${keys.join('.')}: ${issue.message}`
}

// ── Task contracts ───────────────────────────────────────────────────────────

/** A duration: milliseconds, or a number with its unit. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** How a task should be dispatched. */
export interface TaskOptions {
  /** Higher first; 0 without it. */
  readonly priority?: number
  readonly strategy?: string
  readonly resourceRequirements?: ResourceRequirements
  /** Workers that cost more per second are not used. Workers without a price are used after those with one. */
  readonly maxCost?: number
  /** Longest wait for a worker. */
  readonly dispatchTimeout?: Duration
  /** Longest time from the first dispatch to the result, including all waits for workers and all tries. */
  readonly resultTimeout?: Duration
  /** Longest time from a worker's pickup to the result. */
  readonly runTimeout?: Duration
  /** Retry after a run or result timeout, up to `attemptsMax`; each try then has the whole `resultTimeout`. */
  readonly retryTimeouts?: boolean
  readonly attemptsMax?: number
}

/** One unit of work, ready for `dispatchParallel`. Created by calling a contract's entry. */
export interface TypedTaskCall<Type extends string = string, Params = unknown> extends TaskOptions {
  readonly kind: 'task'
  readonly type: Type
  readonly params: Params
}

export interface TaskSpec {
  /** The input of the task. */
  readonly input: Schema
  /** The output of a successful task. */
  readonly output: Schema
  /** Other named outcomes, each with its own data. */
  readonly outcomes?: Readonly<Record<string, Schema>>
}

/** Any task contract, regardless of its types: the bound for generics. */
export interface AnyTaskContract {
  readonly name: string
  readonly input: Schema
  readonly output: Schema
  readonly outcomes: Readonly<Record<string, Schema>>
  readonly '~spec'?: TaskSpec
}

/** One kind of work: its name, its schemas, and a call that creates a task of it. */
export interface TaskContract<Name extends string = string, Spec extends TaskSpec = TaskSpec> {
  (params: SchemaInput<Spec['input']>, options?: TaskOptions): TypedTaskCall<Name, SchemaInput<Spec['input']>>
  readonly name: Name
  readonly input: Spec['input']
  readonly output: Spec['output']
  /** Empty when the spec names none. */
  readonly outcomes: Readonly<Record<string, Schema>>
  /** For the compiler only; never present at run time. */
  readonly '~spec'?: Spec
}

type SpecOf<T> = T extends { readonly '~spec'?: infer Spec } ? NonNullable<Spec> : never
type InputSchemaOf<T> = SpecOf<T> extends { readonly input: infer S } ? S : never
type OutputSchemaOf<T> = SpecOf<T> extends { readonly output: infer S } ? S : never
type OutcomeSchemasOf<T> = SpecOf<T> extends { readonly outcomes: infer R extends Record<string, Schema> } ? R : object

/** The params that a blueprint passes. */
export type InputOf<T> = SchemaInput<InputSchemaOf<T>>
/** The params that a worker's handler receives: after validation, with defaults filled in. */
export type ReceivedInputOf<T> = SchemaOutput<InputSchemaOf<T>>
/** The output that a blueprint receives after success. */
export type OutputOf<T> = SchemaOutput<OutputSchemaOf<T>>
/** The output that a worker's handler may return for success, before validation. */
export type ReturnedOutputOf<T> = SchemaInput<OutputSchemaOf<T>>
/** The named outcomes besides success and failure, each with its data. */
export type OutcomesOf<T> = {
  readonly [K in keyof OutcomeSchemasOf<T> & string]: SchemaOutput<OutcomeSchemasOf<T>[K]>
}
/** The same, as a worker's handler may return them. */
export type ReturnedOutcomesOf<T> = {
  readonly [K in keyof OutcomeSchemasOf<T> & string]: SchemaInput<OutcomeSchemasOf<T>[K]>
}

export type TaskName<Prefix extends string, Key extends string> = Prefix extends '' ? Key : `${Prefix}.${Key}`

/** Task contracts by their short name. */
export type Contract<
  Prefix extends string = string,
  Specs extends Readonly<Record<string, TaskSpec>> = Readonly<Record<string, TaskSpec>>,
> = {
  readonly [K in keyof Specs & string]: TaskContract<TaskName<Prefix, K>, Specs[K]>
}

/**
 * Groups kinds of work under a prefix; blueprints and workers import the same contract, so neither
 * can misread the other. With an empty prefix the task types are the bare keys.
 */
export function contract<const Prefix extends string, const Specs extends Readonly<Record<string, TaskSpec>>>(
  prefix: Prefix,
  specs: Specs,
): Contract<Prefix, Specs> {
  const entries = Object.entries(specs).map(([key, spec]) => {
    const name = prefix === '' ? key : `${prefix}.${key}`
    checkTaskName(name)
    checkOutcomes(name, spec)
    return [key, taskContract(name, spec)] as const
  })
  return contractOf(entries)
}

/** Type boundary between the built entries and the types computed for them. */
function contractOf<C>(entries: readonly (readonly [string, TaskContract])[]): C {
  return Object.freeze(Object.fromEntries(entries)) as C
}

function taskContract<Name extends string, Spec extends TaskSpec>(name: Name, spec: Spec): TaskContract<Name, Spec> {
  const call = (params: SchemaInput<Spec['input']>, options: TaskOptions = {}) =>
    ({ ...options, kind: 'task', type: name, params }) as const
  const fields = { name, input: spec.input, output: spec.output, outcomes: spec.outcomes ?? {} }
  const described: PropertyDescriptorMap = {}
  // A function's own `name` is not writable, only configurable: plain assignment would throw.
  for (const [key, value] of Object.entries(fields)) described[key] = { value, enumerable: true }
  return Object.freeze(Object.defineProperties(call, described)) as TaskContract<Name, Spec>
}

const NAME = /^[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*$/

function checkTaskName(name: string): void {
  if (NAME.test(name) && name.length <= LIMITS.identifierCharsMax) return
  throw new ImpresarioError(
    'INVALID_BLUEPRINT',
    `Contract: "${name}" cannot name a task. Use letters, digits, "_" and "-", with dots between the parts, ` +
      `at most ${LIMITS.identifierCharsMax} characters.`,
  )
}

function checkOutcomes(name: string, spec: TaskSpec): void {
  for (const outcome of Object.keys(spec.outcomes ?? {})) {
    if (outcome !== 'success' && outcome !== 'failure') continue
    throw new ImpresarioError(
      'INVALID_BLUEPRINT',
      `Contract "${name}": "${outcome}" is always there and cannot be declared again. ` +
        'Describe success with `output`, and give other outcomes other names.',
    )
  }
}

/** Whether a value is an entry of a contract, including one from another copy of this package. */
export function isTaskContract(value: unknown): value is TaskContract {
  return typeof value === 'function' && 'input' in value && 'output' in value && 'outcomes' in value
}
