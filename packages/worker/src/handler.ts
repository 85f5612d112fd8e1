import type {
  AnyTaskContract,
  JsonObject,
  ReceivedInputOf,
  ReturnedOutcomesOf,
  ReturnedOutputOf,
  Schema,
} from '@impresario/protocol'
import { InvalidInputError, TaskFailure } from './failure.ts'

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
  /** The trace that this work belongs to (W3C `traceparent`). */
  readonly tracing: Readonly<Record<string, string>>
  /** From 0 to 1. Sent at most once a second; the last one wins. */
  progress(fraction: number, message?: string): void
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

/** A kind of work that this worker does. `perform` returns no promise when the handler needs none. */
export interface Skill {
  readonly name: string
  readonly outcomes: readonly string[]
  perform(params: JsonObject, task: Task): Ending | Promise<Ending>
}

type AnyHandler = (input: never, task: Task) => unknown

export function typedSkill(contract: AnyTaskContract, handler: AnyHandler): Skill {
  const call = callable(handler)
  const finish = (returned: unknown) => checked(contract, returned)
  return {
    name: contract.name,
    outcomes: Object.keys(contract.outcomes),
    perform: (params, task) =>
      chain(check(contract.input, params, wrongInput), (input) => chain(call(input, task), finish)),
  }
}

export function untypedSkill(name: string, handler: UntypedHandler): Skill {
  return { name, outcomes: [], perform: (params, task) => chain(handler(params, task), endingOf) }
}

/** The boundary between the types that the compiler has checked and the values that arrive at run time. */
function callable(handler: AnyHandler): (input: unknown, task: Task) => unknown {
  return handler as (input: unknown, task: Task) => unknown
}

function endingOf(returned: unknown): Ending {
  if (isNamedOutcome(returned)) return { status: returned.outcome, data: returned.data }
  return { status: 'success', data: returned }
}

function checked(contract: AnyTaskContract, returned: unknown): Ending | Promise<Ending> {
  const ending = endingOf(returned)
  const schema = ending.status === 'success' ? contract.output : contract.outcomes[ending.status]
  if (schema === undefined) {
    const message = `The handler of "${contract.name}" ended with "${ending.status}", which its contract does not name.`
    throw new TaskFailure('CONTRACT_VIOLATION_ERROR', message)
  }
  const wrong = (problems: string): TaskFailure =>
    new TaskFailure(
      'CONTRACT_VIOLATION_ERROR',
      `The handler of "${contract.name}" returned something else: ${problems}`,
    )
  return chain(check(schema, ending.data, wrong), (data) => ({ status: ending.status, data }))
}

const wrongInput = (problems: string): TaskFailure => new InvalidInputError(`The input is not as agreed: ${problems}`)

function check(schema: Schema, value: unknown, refuse: (problems: string) => Error): unknown {
  return chain(schema['~standard'].validate(value), (result) => {
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

/** Goes on at once with a value and later with a promise: most tasks never wait, and then a promise is a waste. */
function chain<A, B>(value: A | Promise<A>, next: (value: A) => B | Promise<B>): B | Promise<B> {
  return value instanceof Promise ? value.then(next) : next(value)
}
