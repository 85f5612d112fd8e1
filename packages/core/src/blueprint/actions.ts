import type {
  AnyTaskContract,
  Duration,
  EventType,
  InputOf,
  OutcomesOf,
  Schema,
  TaskOptions,
  TypedTaskCall,
} from '@impresario/protocol'
import type { BranchPolicy } from '../job/job.ts'
import type { FanOut } from './outcome.ts'

/** What a handler returns: a choice made through `actions`. */
export interface AnyActionToken {
  readonly action: 'transition' | 'task' | 'parallel' | 'human' | 'child' | 'sleep' | 'event'
}

/**
 * The same with the states that it can lead to. Bounds of generics say `AnyActionToken`: with
 * `ActionToken<string>` there, the compiler would widen every literal target to `string`.
 */
export interface ActionToken<To extends string = string, Fan = unknown> extends AnyActionToken {
  /** For the compiler only; never there when the program runs. */
  readonly '~to'?: To
  /** The fan-out, or `never` for any other action. */
  readonly '~fan'?: Fan
}

/** Data for which no schema is known. It has to be JSON all the same, which is checked when the handler runs. */
export type LooseData = Readonly<Record<string, unknown>>

/** Statuses that every task can end with beside `success`; without a transition they lead to `failed`. */
type BuiltInStatus = 'failure' | 'timeout' | 'cancelled'

export type TaskTransitions<T> = { readonly [K in 'success' | keyof OutcomesOf<T>]: string } & {
  readonly [K in BuiltInStatus]?: string
}
type LooseTransitions = Readonly<Record<string, string>>
type NoTransitions = Readonly<Record<string, never>>
interface ChildTransitions {
  readonly success: string
  /** Any end but `finished`; the names below are for one kind of it. */
  readonly failure?: string
  readonly failed?: string
  readonly cancelled?: string
  readonly error?: string
  /** Do not wait until a person has mended the child. */
  readonly quarantined?: string
}
/** By decision; `expired` is the transition when no decision is made in time. */
type HumanTransitions = { readonly expired?: string } & { readonly [decision: string]: string }

interface EventTransitions {
  readonly received: string
  /** Where it leads when the event does not come in time; `failed` without it. */
  readonly timeout?: string
}

/** A moment, such as a `Date`. */
export interface Instant {
  /** Milliseconds since 1970. */
  getTime(): number
}

/** Makes a key that `Known` does not have an error at that key. */
type Only<On, Known> = On & { readonly [K in Exclude<keyof On, Known>]: never }
type TargetsIn<On> = On[keyof On] & string

export interface LooseTaskCall extends TaskOptions {
  readonly kind?: 'task'
  readonly type: string
  readonly params?: LooseData
}

/** Another blueprint as a branch. Made by `child`. */
export interface TypedChildCall<Name extends string = string> {
  readonly kind: 'child'
  readonly blueprint: Name
  readonly initialData: unknown
}

export type ParallelCall = TypedTaskCall | LooseTaskCall | TypedChildCall
/** Branches by name. A list of calls under one name is a branch each. */
export type NamedCalls = Readonly<Record<string, ParallelCall | readonly ParallelCall[]>>

/** The part of a blueprint that its callers need. */
export interface NamedBlueprint {
  readonly name: string
  readonly '~types'?: object
}
type TypesOf<B> = B extends { readonly '~types'?: infer T } ? NonNullable<T> : never
/** What a job of this blueprint has to be started with. */
export type InitialDataOf<B> = TypesOf<B> extends { readonly input: infer Input } ? Input : LooseData
/** What a job of this blueprint gives. */
export type ResultOf<B> = TypesOf<B> extends { readonly output: infer Output } ? Output : unknown

/** One per handler run. Every method only writes down the choice; it takes effect once the handler has returned it. */
export interface Actions<History = LooseData> {
  /** Goes on at once, with `patch` merged into the state history. */
  readonly transitionTo: <const To extends string>(
    state: To,
    patch?: Partial<NoInfer<History>>,
  ) => ActionToken<To, never>

  /**
   * Sends a task and pauses the job until it has ended; `transitions` says where each status leads.
   * Several calls that all lead to one aggregator are a fan-out. `eventTransitions` says where an event of the worker
   * leads: the job goes there at once, with the event's payload in its state history, and the worker is told to stop.
   */
  readonly dispatchTask: DispatchTask

  /**
   * Sends all calls at once. The aggregator `into` runs once, when they have ended. Calls that are given by name have their
   * results under that name there, if the aggregator says what it gathers.
   */
  readonly dispatchParallel: <const Into extends string, const Calls extends readonly ParallelCall[] | NamedCalls>(
    calls: Calls,
    options: { readonly into: Into; readonly policy?: BranchPolicy },
  ) => ActionToken<Into, FanOut<Into, Calls>>

  /**
   * Pauses until a person decides. Without a decision after `expires`, the transition `expired` is taken. Reminders go to the
   * job's webhook and its trail: the first one after `remindAfter`, then one every `remindEvery`, at most 30.
   *
   * `form` asks for data with the decision: a JSON Schema of an object, or a schema that has one, such as zod's. People get a
   * form, and what they send is checked; it is in `decision.data` of the state history. `formFor` names the decisions that need
   * it; without it, all but `rejected`.
   */
  readonly awaitHumanApproval: <const On extends HumanTransitions>(options: {
    readonly message: string
    readonly transitions: On
    readonly expires?: Duration
    readonly remindAfter?: Duration
    readonly remindEvery?: Duration
    readonly form?: Schema | Readonly<Record<string, unknown>>
    readonly formFor?: readonly Exclude<keyof On & string, 'expired'>[]
  }) => ActionToken<TargetsIn<On>, never>

  /**
   * Waits for an event from outside: sent to this job by its id, or to all jobs that wait for the topic and the
   * key that `match` names. An event that came before is there already. After `timeout` the way `timeout` is taken.
   */
  readonly waitForEvent: <const On extends EventTransitions>(
    event: EventType | string,
    options: {
      readonly transitions: Only<On, keyof EventTransitions>
      readonly timeout?: Duration
      readonly match?: string
    },
  ) => ActionToken<TargetsIn<On>>

  /**
   * Stops until a moment, for a span such as `'3d'` or until a `Date`, and then goes on to `to`. The sleep is durable, takes
   * no memory, and ends at once when the job is cancelled. Two years at most.
   */
  readonly sleep: <const To extends string>(time: Duration | Instant, options: { readonly to: To }) => ActionToken<To>

  /** Runs another blueprint as a part of this job and pauses until it has ended. */
  readonly runBlueprint: RunBlueprint
}

interface DispatchTask {
  <
    T extends AnyTaskContract,
    const On extends TaskTransitions<T>,
    const Event extends LooseTransitions = NoTransitions,
  >(
    task: T,
    options: TaskOptions & {
      readonly params: NoInfer<InputOf<T>>
      readonly transitions: Only<On, 'success' | BuiltInStatus | keyof OutcomesOf<T>>
      readonly eventTransitions?: Event
    },
  ): ActionToken<TargetsIn<On> | TargetsIn<Event>, never>
  <const On extends LooseTransitions, const Event extends LooseTransitions = NoTransitions>(
    options: TaskOptions & {
      readonly type: string
      readonly params?: LooseData
      readonly transitions: On
      readonly eventTransitions?: Event
    },
  ): ActionToken<TargetsIn<On> | TargetsIn<Event>, never>
}

interface RunBlueprint {
  <B extends NamedBlueprint, const On extends ChildTransitions>(
    blueprint: B,
    options: {
      readonly initialData: NoInfer<InitialDataOf<B>>
      readonly transitions: Only<On, keyof ChildTransitions>
    },
  ): ActionToken<TargetsIn<On>, never>
  <const On extends ChildTransitions>(options: {
    readonly name: string
    readonly initialData?: LooseData
    readonly transitions: Only<On, keyof ChildTransitions>
  }): ActionToken<TargetsIn<On>, never>
}

/** A branch for `dispatchParallel` that runs a whole blueprint. */
export function child<const B extends NamedBlueprint | string>(
  blueprint: B,
  initialData: NoInfer<B extends string ? LooseData : InitialDataOf<B>>,
): TypedChildCall<B extends string ? B : B extends NamedBlueprint ? B['name'] : never> {
  return { kind: 'child', blueprint: nameOf(blueprint), initialData }
}

/** Boundary: the name of a blueprint as the compiler knows it. */
function nameOf<Name extends string>(blueprint: NamedBlueprint | string): Name {
  return (typeof blueprint === 'string' ? blueprint : blueprint.name) as Name
}
