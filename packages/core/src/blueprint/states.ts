import type { DataObject } from '@impresario/protocol'
import type { Outcome } from '../job/job.ts'
import type { Actions, ActionToken, AnyActionToken } from './actions.ts'
import type { AggregatorContext, Context, GatheringContext, LooseHistory, UndoContext } from './context.ts'
import type { AnyUndo, UndoActions, UndoToken } from './undo.ts'
import type { BranchSources, FanOut } from './outcome.ts'

// ── What user code writes ────────────────────────────────────────────────────

type Returned = AnyActionToken | readonly AnyActionToken[]
type MaybePromise<T> = T | Promise<T>

/** The states that a returned value can lead to. */
type TargetsOf<R> = TokenTarget<Awaited<R>>
type TokenTarget<T> =
  T extends ActionToken<infer To> ? To : T extends readonly (infer Item)[] ? TokenTarget<Item> : never

/** The fan-outs among it. Of targets that are no literals any may be the aggregator of one. */
type FansOf<R> = string extends TargetsOf<R> ? FanOut : TokenFan<Awaited<R>>
type TokenFan<T> =
  T extends ActionToken<string, infer Fan>
    ? unknown extends Fan
      ? FanOut
      : Fan
    : T extends readonly (infer Item)[]
      ? TokenFan<Item>
      : never

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
export interface StateDefinition<To extends string = string, Fan = never, Gathers = never> extends AnyState {
  /** For the compiler only; never there when the program runs. */
  readonly '~to'?: To
  /** Its fan-outs. */
  readonly '~fan'?: Fan
  /** What it expects as an aggregator, if it says so. */
  readonly '~gathers'?: Gathers
}

/** A string expression such as `context.initial_data.quality == 'low'`, or a function. */
export type Condition<C> = string | ((context: C) => boolean)

/** Conditional handlers of one state. The first condition that holds decides; without `otherwise` one has to. */
export interface ConditionalState<To extends string, C, History, Fan = never> extends StateDefinition<To, Fan> {
  when<R extends MaybePromise<Returned>, const D extends string = never>(
    condition: Condition<C>,
    handler: Handler<C, History, R>,
    options?: HandlerOptions<D>,
  ): ConditionalState<To | Known<R, D>, C, History, Fan | FansOf<R>>
  otherwise<R extends MaybePromise<Returned>, const D extends string = never>(
    handler: Handler<C, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<To | Known<R, D>, Fan | FansOf<R>>
  /** The same as `otherwise`. */
  handler<R extends MaybePromise<Returned>, const D extends string = never>(
    handler: Handler<C, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<To | Known<R, D>, Fan | FansOf<R>>
}

interface EndOptions<C, Output, How> {
  readonly outcome?: How
  /** What the job gives. It has to fit `output` only where the job finishes. */
  readonly result?: (context: C) => MaybePromise<How extends 'finished' ? Output : unknown>
}

/** How the states of a blueprint are made. */
export interface StateBuilders<Data = DataObject, History = LooseHistory, Stores = object, Output = unknown> {
  /** Runs code that chooses what comes next. It may run again after a crash, so make it safe to repeat. */
  handler<R extends MaybePromise<Returned>, const D extends string = never>(
    handler: Handler<Context<Data, History, Stores>, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<Known<R, D>, FansOf<R>>
  when<R extends MaybePromise<Returned>, const D extends string = never>(
    condition: Condition<Context<Data, History, Stores>>,
    handler: Handler<Context<Data, History, Stores>, History, R>,
    options?: HandlerOptions<D>,
  ): ConditionalState<Known<R, D>, Context<Data, History, Stores>, History, FansOf<R>>
  /**
   * Runs once, after all branches of a fan-out have ended. `gathers` says what they are: `context.results` then has how each
   * one ended, by its name, and every fan-out into this state must send just these.
   */
  aggregator<const Sources extends BranchSources, R extends MaybePromise<Returned>, const D extends string = never>(
    gathers: Sources,
    handler: Handler<GatheringContext<Data, History, Stores, Sources>, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<Known<R, D>, FansOf<R>, Sources>
  aggregator<R extends MaybePromise<Returned>, const D extends string = never>(
    handler: Handler<AggregatorContext<Data, History, Stores>, History, R>,
    options?: HandlerOptions<D>,
  ): StateDefinition<Known<R, D>, FansOf<R>>
  /**
   * A state that can be undone. When the job fails or is cancelled after the state was done, `undo` runs: the newest first, each
   * once it is done. It may send a task, run a blueprint, or just run code, and it may run again after a crash.
   */
  withUndo<S extends AnyState>(
    state: S,
    // oxlint-disable-next-line typescript/no-invalid-void-type -- code that returns nothing is an undo too
    undo: (context: UndoContext<Data, History, Stores>, actions: UndoActions) => MaybePromise<UndoToken | void>,
  ): S
  /** Ends the job: as finished, unless the state is called `failed` or `error` or names another outcome. */
  end<const How extends Outcome = 'finished'>(
    options?: EndOptions<Context<Data, History, Stores>, Output, How>,
  ): StateDefinition<never>
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
  | { readonly kind: 'handler'; readonly rules: readonly Rule[]; readonly undo?: AnyUndo }
  | {
      readonly kind: 'aggregator'
      readonly rules: readonly Rule[]
      readonly gathers?: BranchSources
      readonly undo?: AnyUndo
    }
  | {
      readonly kind: 'end'
      readonly outcome: Outcome | undefined
      readonly result: ((context: object) => unknown) | undefined
    }

const builders = {
  handler: (handler: AnyHandler, options?: HandlerOptions) => stateOf([ruleOf(undefined, handler, options)]),
  when: (condition: Rule['condition'], handler: AnyHandler, options?: HandlerOptions) =>
    conditionalOf([ruleOf(condition, handler, options)]),
  aggregator: (...given: AggregatorArguments) => aggregatorOf(given),
  withUndo: ({ definition }: AnyState, undo: AnyUndo) => ({ definition: { ...definition, undo } }),
  end: (options: { readonly outcome?: Outcome; readonly result?: (context: object) => unknown } = {}) => ({
    definition: { kind: 'end', outcome: options.outcome, result: options.result },
  }),
}

type AggregatorArguments =
  | readonly [handler: AnyHandler, options?: HandlerOptions]
  | readonly [gathers: BranchSources, handler: AnyHandler, options?: HandlerOptions]

function aggregatorOf(given: AggregatorArguments): AnyState {
  if (isNamed(given)) {
    const [gathers, handler, options] = given
    return { definition: { kind: 'aggregator', rules: [ruleOf(undefined, handler, options)], gathers } }
  }
  const [handler, options] = given
  return { definition: { kind: 'aggregator', rules: [ruleOf(undefined, handler, options)] } }
}

function isNamed(given: AggregatorArguments): given is Extract<AggregatorArguments, { readonly 0: BranchSources }> {
  return typeof given[0] === 'object'
}

function stateOf(rules: readonly Rule[]): AnyState {
  return { definition: { kind: 'handler', rules } }
}

function ruleOf(condition: Rule['condition'], handler: AnyHandler, options: HandlerOptions | undefined): Rule {
  return { condition, handler, to: options?.to }
}

function conditionalOf(rules: readonly Rule[]): object {
  const otherwise = (handler: AnyHandler, options?: HandlerOptions) =>
    stateOf([...rules, ruleOf(undefined, handler, options)])
  return {
    ...stateOf(rules),
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
