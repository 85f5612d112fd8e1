import type { DataObject } from '@impresario/protocol'
import type { Outcome } from '../job/job.ts'
import type { Actions, ActionToken, AnyActionToken } from './actions.ts'
import type { AggregatorContext, Context, LooseHistory } from './context.ts'

// ── What user code writes ────────────────────────────────────────────────────

type Returned = AnyActionToken | readonly AnyActionToken[]
type MaybePromise<T> = T | Promise<T>

/** The states that a returned value can lead to. */
type TargetsOf<R> = TokenTarget<Awaited<R>>
type TokenTarget<T> =
  T extends ActionToken<infer To> ? To : T extends readonly (infer Item)[] ? TokenTarget<Item> : never

/** Targets that are literals, or else those that were declared with `to`. */
type Known<R, Declared extends string> =
  string extends TargetsOf<R> ? ([Declared] extends [never] ? string : Declared) : TargetsOf<R> | Declared

export interface HandlerOptions<To extends string = string> {
  /** Where it can lead, for targets that its code does not show. */
  readonly to: readonly To[]
}

type Handler<C, History, R extends MaybePromise<Returned>> = (context: C, actions: Actions<History>) => R

/** One state, as a builder made it. */
export interface AnyState {
  readonly definition: Definition
}

/** The same with the states that it can lead to. Bounds of generics say `AnyState`, for the reason of `AnyActionToken`. */
export interface StateDefinition<To extends string = string> extends AnyState {
  /** For the compiler only; never there when the program runs. */
  readonly '~to'?: To
}

/** A string expression such as `context.initial_data.quality == 'low'`, or a function. */
export type Condition<C> = string | ((context: C) => boolean)

/** Conditional handlers of one state. The first condition that holds decides; without `otherwise` one has to. */
export interface ConditionalState<To extends string, C, History> extends StateDefinition<To> {
  when<R extends MaybePromise<Returned>, const D extends string = never>(
    condition: Condition<C>,
    handler: Handler<C, History, R>,
    options?: HandlerOptions<D>,
  ): ConditionalState<To | Known<R, D>, C, History>
  otherwise<R extends MaybePromise<Returned>, const D extends string = never>(
    handler: Handler<C, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<To | Known<R, D>>
  /** The same as `otherwise`. */
  handler<R extends MaybePromise<Returned>, const D extends string = never>(
    handler: Handler<C, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<To | Known<R, D>>
}

type EndOptions<C, Output> =
  | { readonly outcome?: 'finished'; readonly result?: (context: C) => MaybePromise<Output> }
  | {
      readonly outcome: Exclude<Outcome, 'finished'>
      readonly result?: (context: C) => unknown
    }

/** How the states of a blueprint are made. */
export interface StateBuilders<Data = DataObject, History = LooseHistory, Stores = object, Output = unknown> {
  /** Runs code that chooses what comes next. It may run again after a crash, so make it safe to repeat. */
  handler<R extends MaybePromise<Returned>, const D extends string = never>(
    handler: Handler<Context<Data, History, Stores>, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<Known<R, D>>
  when<R extends MaybePromise<Returned>, const D extends string = never>(
    condition: Condition<Context<Data, History, Stores>>,
    handler: Handler<Context<Data, History, Stores>, History, R>,
    options?: HandlerOptions<D>,
  ): ConditionalState<Known<R, D>, Context<Data, History, Stores>, History>
  /** Runs once, after all branches of a fan-out have ended. */
  aggregator<R extends MaybePromise<Returned>, const D extends string = never>(
    handler: Handler<AggregatorContext<Data, History, Stores>, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<Known<R, D>>
  /** Ends the job: as finished, unless the state is called `failed` or `error` or names another outcome. */
  end(options?: EndOptions<Context<Data, History, Stores>, Output>): StateDefinition<never>
}

// ── What becomes of it ───────────────────────────────────────────────────────

/** User code after its types have done their work. */
export type AnyHandler = (context: object, actions: Actions) => unknown

export interface Rule {
  /** Without it the rule always applies. */
  readonly condition: string | ((context: object) => unknown) | undefined
  readonly handler: AnyHandler
  readonly to: readonly string[] | undefined
}

export type Definition =
  | { readonly kind: 'handler' | 'aggregator'; readonly rules: readonly Rule[] }
  | {
      readonly kind: 'end'
      readonly outcome: Outcome | undefined
      readonly result: ((context: object) => unknown) | undefined
    }

const builders = {
  handler: (handler: AnyHandler, options?: HandlerOptions) => stateOf('handler', [ruleOf(undefined, handler, options)]),
  when: (condition: Rule['condition'], handler: AnyHandler, options?: HandlerOptions) =>
    conditionalOf([ruleOf(condition, handler, options)]),
  aggregator: (handler: AnyHandler, options?: HandlerOptions) =>
    stateOf('aggregator', [ruleOf(undefined, handler, options)]),
  end: (options: { readonly outcome?: Outcome; readonly result?: (context: object) => unknown } = {}) => ({
    definition: { kind: 'end', outcome: options.outcome, result: options.result },
  }),
}

function stateOf(kind: 'handler' | 'aggregator', rules: readonly Rule[]): AnyState {
  return { definition: { kind, rules } }
}

function ruleOf(condition: Rule['condition'], handler: AnyHandler, options: HandlerOptions | undefined): Rule {
  return { condition, handler, to: options?.to }
}

function conditionalOf(rules: readonly Rule[]): object {
  const otherwise = (handler: AnyHandler, options?: HandlerOptions) =>
    stateOf('handler', [...rules, ruleOf(undefined, handler, options)])
  return {
    ...stateOf('handler', rules),
    when: (condition: Rule['condition'], handler: AnyHandler, options?: HandlerOptions) =>
      conditionalOf([...rules, ruleOf(condition, handler, options)]),
    otherwise,
    handler: otherwise,
  }
}

/** Boundary: the builders lend their types to user code and keep none of them. */
export function stateBuilders<Data, History, Stores, Output>(): StateBuilders<Data, History, Stores, Output> {
  return builders as unknown as StateBuilders<Data, History, Stores, Output>
}

/** Looks into what the user's function returned, which in JavaScript can be anything. */
export function definitionOf(state: unknown): Definition | undefined {
  if (typeof state !== 'object' || state === null || !('definition' in state)) return undefined
  return state.definition as Definition
}
