import type { AnyTaskContract, Data, OutcomesOf, OutputOf, TaskError } from '@impresario/protocol'
import type { NamedBlueprint, ResultOf } from './actions.ts'

// ── What a call can end with ─────────────────────────────────────────────────

/** What a result comes from: an entry of a contract, a blueprint, or the name of either. */
export type ResultSource = AnyTaskContract | NamedBlueprint | string

type NameOf<T> = T extends string ? T : T extends { readonly name: infer Name } ? Name : never

/** The data by status. Of a name alone nothing is known but that it is JSON. */
type DataByStatus<T> = T extends string
  ? { readonly success: Data | undefined }
  : T extends AnyTaskContract
    ? { readonly success: OutputOf<T> } & OutcomesOf<T>
    : { readonly success: ResultOf<T> }

/** The statuses that come with data: `success`, and the outcomes that a contract names. */
export type StatusOf<T> = keyof DataByStatus<T> & string
/** What the source gives under a status. */
export type ResultData<T, Status> = Status extends keyof DataByStatus<T> ? DataByStatus<T>[Status] : never

interface Failed {
  readonly status: 'failure'
  /** What a child job left behind that did not finish. */
  readonly data?: unknown
  readonly error: TaskError
}
interface Cancelled {
  readonly status: 'cancelled'
  readonly data?: unknown
  readonly error?: TaskError | undefined
}

/** Without a contract or a blueprint, any status may come with any data. */
interface LooseOutcome {
  readonly status: string
  readonly data?: Data | undefined
  readonly error?: TaskError | undefined
}

/** How a task or a child ended; `status` tells what `data` is. */
export type OutcomeOf<T> = T extends string ? LooseOutcome : KnownOutcome<T>
type KnownOutcome<T> =
  | {
      [Status in StatusOf<T>]: {
        readonly status: Status
        readonly data: ResultData<T, Status>
        readonly error?: undefined
      }
    }[StatusOf<T>]
  | Failed
  | Cancelled

export interface From {
  /** The state that sent the task or ran the child. Without it: the newest result of this task or blueprint. */
  readonly from?: string
}

/** Finds results of earlier states. */
export interface ResultReader {
  /**
   * What a task or a child gave, typed by its contract or its blueprint. Throws when there is none with this status: ask for
   * it where it has to be there.
   */
  readonly resultOf: <T extends ResultSource, const Status extends StatusOf<T> = 'success' & StatusOf<T>>(
    source: T,
    options?: From & { readonly status?: Status },
  ) => ResultData<T, Status>
  /** How a task or a child ended; `undefined` when none has in this job. */
  readonly outcomeOf: <T extends ResultSource>(source: T, options?: From) => OutcomeOf<T> | undefined
}

// ── What an aggregator gathers ───────────────────────────────────────────────

/** What an aggregator expects, by the name of the branch. In brackets: any number of branches, in the order of sending. */
export type BranchSources = Readonly<Record<string, ResultSource | readonly [ResultSource]>>

/** What the branches gave, by name. */
export type BranchResults<Sources> = {
  readonly [Name in keyof Sources]: Sources[Name] extends readonly [infer T]
    ? readonly OutcomeOf<T>[]
    : OutcomeOf<Sources[Name]>
}

/** A fan-out, for the compiler: its calls by name, or a list of calls without names, and its aggregator. */
export interface FanOut<Into = string, Calls = unknown> {
  readonly into: Into
  readonly calls: Calls
}

type CalledName<Call> = Call extends { readonly kind: 'child'; readonly blueprint: infer Name }
  ? Name
  : Call extends { readonly type: infer Name }
    ? Name
    : never

type Fits<Call, T> = string extends CalledName<Call> ? true : [CalledName<Call>] extends [NameOf<T>] ? true : false

/** What is wrong with the branches that a fan-out sends into an aggregator that names what it gathers; else `never`. */
export type BranchProblem<Into extends string, Sources, Calls> = Calls extends readonly unknown[]
  ? `"${Into}" gathers branches by name: give dispatchParallel an object of calls instead of a list`
  :
      | (keyof Sources extends keyof Calls
          ? never
          : `the fan-out into "${Into}" lacks the branch "${Exclude<keyof Sources, keyof Calls> & string}"`)
      | {
          [Name in keyof Calls & string]: Name extends keyof Sources
            ? CallProblem<Into, Name, Sources[Name], Calls[Name]>
            : `"${Into}" gathers no branch "${Name}"`
        }[keyof Calls & string]

type CallProblem<Into extends string, Name extends string, Source, Call> = Source extends readonly [infer T]
  ? Call extends readonly (infer Each)[]
    ? CallProblem<Into, Name, T, Each>
    : `"${Into}" gathers a list of branches "${Name}": give a list of calls`
  : Call extends readonly unknown[]
    ? `"${Into}" gathers one branch "${Name}": give one call instead of a list`
    : Fits<Call, Source> extends true
      ? never
      : `branch "${Name}" of "${Into}" has to be "${NameOf<Source> & string}"`
