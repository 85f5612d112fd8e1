import { chain, checkSchema, isJsonObject, isTaskContract } from '@impresario/protocol'
import type {
  AnyTaskContract,
  JsonObject,
  ReceivedInputOf,
  ReturnedOutcomesOf,
  ReturnedOutputOf,
  Schema,
  SchemaOutput,
  SkillInfo,
  UsageReport,
} from '@impresario/protocol'
import type { Log } from '../runtime/log.ts'
import { InvalidInputError, TaskFailure } from './failure.ts'
import type { WorkerFiles } from './worker-files.ts'

/** What a handler is told about the task beside its input, and what it can say while it works. */
export interface Task {
  readonly jobId: string
  readonly taskId: string
  readonly type: string
  /** From 1; more after a failure. */
  readonly attempt: number
  /** The same for every attempt and delivery of this task: give it to what must not happen twice. */
  readonly idempotencyKey: string
  readonly priority: number
  /** When the result stops to matter, in milliseconds since 1970. */
  readonly deadline: number | undefined
  /** Aborts when the task is cancelled, its deadline passes, or the worker shuts down and cannot wait. */
  readonly signal: AbortSignal
  /** The trace that this work belongs to: W3C `traceparent` and `tracestate`. */
  readonly tracingContext: Readonly<Record<string, string>>
  /** The former name of `tracingContext`. */
  readonly tracing: Readonly<Record<string, string>>
  /** From 0 to 1. Sent at most once a second; the last one wins, and is sent until it has arrived. */
  progress(fraction: number, message?: string): void
  /**
   * Tells the job that something has happened. Sent until the orchestrator has it, so it may arrive twice (with the same
   * event id). Resolves when it has arrived; the task's result waits for that, whether the handler does or not. Rejects
   * when the event is refused.
   */
  sendEvent(type: string, payload?: JsonObject): Promise<void>
  /**
   * Says what the task has used, beside what it said before: `meter({ usd: 0.02, tokens: 1200 })`. It counts against the
   * budgets of the automation and the agent that the task works for. Sent until the orchestrator has it, and counted once.
   * Resolves when it is durable; the task's result waits for that, whether the handler does or not.
   */
  meter(usage: UsageReport): Promise<void>
  /** The files of the job, and a directory for local ones, which is deleted when the task has ended. */
  readonly files: WorkerFiles
  /** Writes to the worker's own log, with the task and its job. The newest lines travel with the result and are kept with the job. */
  readonly log: Log
  /** Says that a skill or a model is loaded here, so that work for it comes here first. */
  setHot(name: string): void
  unsetHot(name: string): void
}

const OUTCOME = Symbol.for('impresario.outcome')

/** One of the named ways to end that a contract declares beside success. */
export interface NamedOutcome<Name extends string = string, Data = unknown> {
  readonly [OUTCOME]: true
  readonly outcome: Name
  readonly data: Data
}

/** What a handler returns to end with a named outcome: `return outcome('needs_review', { reason })`. */
export function outcome<const Name extends string, Data = undefined>(
  name: Name,
  data?: Data,
): NamedOutcome<Name, Data> {
  return namedOutcome(name, data)
}

function namedOutcome<Name extends string, Data>(name: Name, data: Data | undefined): NamedOutcome<Name, Data> {
  return { [OUTCOME]: true, outcome: name, data } as NamedOutcome<Name, Data>
}

function isNamedOutcome(value: unknown): value is NamedOutcome {
  return typeof value === 'object' && value !== null && OUTCOME in value
}

type OutcomeOf<T> = {
  [K in keyof ReturnedOutcomesOf<T> & string]: NamedOutcome<K, ReturnedOutcomesOf<T>[K]>
}[keyof ReturnedOutcomesOf<T> & string]

/** Everything that a handler of this task may return. */
export type Returned<T> = ReturnedOutputOf<T> | OutcomeOf<T>

export type HandlerFor<T> = (input: ReceivedInputOf<T>, task: Task) => Returned<T> | Promise<Returned<T>>

export type ContractGroup = Readonly<Record<string, AnyTaskContract>>

/** One handler for every task of the group: a missing one is an error of the compiler. */
export type HandlersFor<C extends ContractGroup> = { readonly [K in keyof C]: HandlerFor<C[K]> }

/** A handler without a contract: gets the params as they came. */
export type UntypedHandler = (params: JsonObject, task: Task) => unknown

/** How a task ended well. */
export interface Ending {
  readonly status: string
  readonly data: unknown
}

/** A kind of work that this worker does. Nothing here returns a promise unless it has to wait. */
export interface Skill {
  readonly name: string
  /** What the orchestrator is told about it. */
  readonly info: SkillInfo
  /** The longest time for one run, if this worker sets one. */
  readonly timeoutMs: number | undefined
  /** What its events hold, by their type; without it they are not checked. */
  readonly events: Readonly<Record<string, Schema>> | undefined
  /** Makes what the handler gets from what came over the wire, or throws what is wrong with it. */
  read(params: JsonObject): unknown
  call(input: unknown, task: Task): unknown
  /** Makes the ending from what the handler returned. */
  finish(returned: unknown): Ending | Promise<Ending>
}

/** What can be said about a task without a contract. */
export interface SkillOptions<Input extends Schema = Schema> {
  /** A standard schema (zod and others), or `jsonSchema({…})`. Params that do not fit fail as `INVALID_INPUT_ERROR`. */
  readonly input?: Input
  readonly output?: Schema
  /** Named ways to end beside success, with their data. */
  readonly outcomes?: Readonly<Record<string, Schema>>
  /** The events that it may send, with their payload. */
  readonly events?: Readonly<Record<string, Schema>>
  /** The signal of a task that takes longer aborts, and the task fails as `TIMEOUT_ERROR`. */
  readonly timeoutMs?: number
  readonly description?: string
  readonly version?: string
}

export type HandlerWith<Input extends Schema> = (input: SchemaOutput<Input>, task: Task) => unknown

type AnyHandler = (input: never, task: Task) => unknown

/** Each task of a contract, or the one that was given alone, with its handler. Refuses what has none. */
export function handlersOf(
  contract: AnyTaskContract | ContractGroup,
  given: AnyHandler | HandlersFor<ContractGroup>,
): readonly (readonly [AnyTaskContract, AnyHandler])[] {
  if (isTaskContract(contract)) {
    if (typeof given === 'function') return [[contract, given]]
    throw new TypeError(`The handler of "${contract.name}" must be a function: worker.handle(task, handler).`)
  }
  return Object.entries(contract).map(([key, task]) => {
    const handler = typeof given === 'function' ? undefined : given[key]
    if (typeof handler === 'function') return [task, handler] as const
    throw new TypeError(
      `There is no handler for "${key}". Give one for every task of the contract, ` +
        'or serve a part of it with worker.handle(contract.task, handler).',
    )
  })
}

export function typedSkill(contract: AnyTaskContract, handler: AnyHandler, checksResults: boolean): Skill {
  const { name, input, output, outcomes } = contract
  return makeSkill(name, { input, output, outcomes }, handler, checksResults)
}

export function makeSkill(name: string, options: SkillOptions, handler: AnyHandler, checksResults: boolean): Skill {
  const { input, output } = options
  const wrongInput = (problems: string): TaskFailure => new InvalidInputError(`The input is not as agreed: ${problems}`)
  return {
    name,
    info: infoOf(name, options),
    timeoutMs: options.timeoutMs,
    events: options.events,
    read: input === undefined ? (params) => params : (params) => check(input, params, wrongInput),
    call: callable(handler),
    finish: checksResults && output !== undefined ? (returned) => checked(name, options, returned) : endingOf,
  }
}

/** The boundary between the types that the compiler has checked and the values that arrive at run time. */
function callable(handler: AnyHandler): (input: unknown, task: Task) => unknown {
  return handler as (input: unknown, task: Task) => unknown
}

function infoOf(name: string, options: SkillOptions): SkillInfo {
  const { input, output, outcomes = {}, events, description, version } = options
  const inputSchema = describedBy(input, 'input')
  const outputSchema = describedBy(output, 'output')
  const eventSchemas = Object.entries(events ?? {}).map(([type, schema]) => [type, describedBy(schema, 'input') ?? {}])
  const statuses = Object.keys(outcomes)
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(version === undefined ? {} : { version }),
    ...(inputSchema === undefined ? {} : { input_schema: inputSchema }),
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
    ...(eventSchemas.length === 0 ? {} : { events_schema: Object.fromEntries(eventSchemas) as JsonObject }),
    ...(statuses.length === 0 ? {} : { output_statuses: statuses }),
  }
}

/** Libraries that can describe their schemas as JSON Schema do it under this name; the others describe nothing. */
interface Describing {
  readonly jsonSchema?: Readonly<Record<'input' | 'output', (options: { readonly target: string }) => unknown>>
}

function describedBy(schema: Schema | undefined, side: 'input' | 'output'): JsonObject | undefined {
  if (schema === undefined) return undefined
  try {
    const described = describing(schema).jsonSchema?.[side]({ target: 'draft-2020-12' })
    return isJsonObject(described) ? described : undefined
  } catch {
    // A schema with parts that JSON Schema has no words for, such as a transformation: it works, and is not shown.
    return undefined
  }
}

/** The boundary: an optional part of the standard that our own interface does not name. */
function describing(schema: Schema): Describing {
  return schema['~standard'] as Describing
}

function endingOf(returned: unknown): Ending {
  if (isNamedOutcome(returned)) return { status: returned.outcome, data: returned.data }
  return { status: 'success', data: returned }
}

function checked(name: string, options: SkillOptions, returned: unknown): Ending | Promise<Ending> {
  const ending = endingOf(returned)
  const schema = ending.status === 'success' ? options.output : options.outcomes?.[ending.status]
  if (schema === undefined) {
    const message = `The handler of "${name}" ended with "${ending.status}", which its contract does not name.`
    throw new TaskFailure('CONTRACT_VIOLATION_ERROR', message)
  }
  const wrong = (problems: string): TaskFailure =>
    new TaskFailure('CONTRACT_VIOLATION_ERROR', `The handler of "${name}" returned something else: ${problems}`)
  return chain(check(schema, ending.data, wrong), (data) => ({ status: ending.status, data }))
}

/** What the schema makes of the value. Throws, or rejects, when it does not fit. */
export function check(schema: Schema, value: unknown, refuse: (problems: string) => Error): unknown {
  return chain(checkSchema(schema, value), (result) => {
    if (result.issues === undefined) return result.value
    throw refuse(result.issues.map(problemOf).join('; '))
  })
}

interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

function problemOf(issue: Issue): string {
  const keys = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part))
  return keys.length === 0 ? issue.message : `${keys.join('.')}: ${issue.message}`
}
