import type { DataObject, JsonObject } from '@impresario/protocol'
import type { BranchOutcome, JobFailure } from '../job/job.ts'
import type { TurnInput } from './blueprint.ts'
import { storedCopy } from './json-copy.ts'

/**
 * The state history of a blueprint that declares no `history` schema. States write to it freely and
 * worker results are merged into it, so its keys are not known: this is the one place of the public
 * API where the compiler checks nothing. Declare `history` to get it checked.
 */
// oxlint-disable-next-line typescript/no-explicit-any
export type LooseHistory = any

/** What a handler knows. Everything in it is a copy: only `stateHistory` finds its way back into the job. */
export interface Context<Data = DataObject, History = LooseHistory, Stores = object> {
  readonly jobId: string
  readonly currentState: string
  readonly initialData: Data
  /** Shared by all states of the job. What the handler leaves in it is stored with its action. */
  readonly stateHistory: History
  readonly client: { readonly id: string; readonly plan: string | undefined; readonly params: DataObject }
  readonly dataStores: Stores
  /** Why the job is in this state, when a failure, a timeout or a rejection led here. Absent once the job has gone on. */
  readonly failure: JobFailure | undefined
  /** The trace that the job belongs to, to be passed on: `traceparent` and `tracestate`, if it came with any. */
  readonly tracingContext: Readonly<Record<string, string>>
  /** Aborts when the handler's time is up or the job is cancelled. */
  readonly signal: AbortSignal
}

export interface AggregatorContext<Data = DataObject, History = LooseHistory, Stores = object> extends Context<
  Data,
  History,
  Stores
> {
  /** What each branch gave, by its name, in the order in which the branches were sent out. */
  readonly aggregationResults: Readonly<Record<string, BranchOutcome>>
}

/** The context before the schemas lent it their types. */
export interface RawContext extends AggregatorContext<JsonObject, Record<string, unknown>> {}

/** Builds the context of one handler run from copies, so that user code cannot reach the stored job. */
export function contextOf(input: TurnInput, dataStores: object): RawContext {
  const { job } = input
  return {
    jobId: job.id,
    currentState: job.state,
    initialData: storedCopy(job.initialData),
    stateHistory: { ...storedCopy(job.stateHistory) },
    client: { id: job.client.id, plan: job.client.plan, params: storedCopy(job.client.params ?? {}) },
    dataStores,
    failure: job.failure && structuredFailure(job.failure),
    tracingContext: { ...job.tracing },
    // Asked for only when it is used: most handlers never look at it, and it is dear to make.
    get signal() {
      return input.signal
    },
    aggregationResults: outcomesOf(storedCopy(storedOutcomes(job.aggregationResults ?? {}))),
  }
}

/** What the handler of a state that is no aggregator gets. Frozen: a new `stateHistory` would be lost without a word. */
export function withoutResults(context: RawContext): Readonly<Omit<RawContext, 'aggregationResults'>> {
  const { jobId, currentState, initialData, stateHistory, client, dataStores, failure, tracingContext } = context
  return Object.freeze({
    jobId,
    currentState,
    initialData,
    stateHistory,
    client,
    dataStores,
    failure,
    tracingContext,
    get signal() {
      return context.signal
    },
  })
}

function structuredFailure({ task, child, ...failure }: JobFailure): JobFailure {
  return {
    ...failure,
    ...(task === undefined ? {} : { task: { ...task } }),
    ...(child === undefined ? {} : { child: { ...child } }),
  }
}

/** Boundary: outcomes are stored with their job, as JSON. */
function storedOutcomes(outcomes: Readonly<Record<string, BranchOutcome>>): JsonObject {
  return outcomes as unknown as JsonObject
}

/** Boundary: a copy of branch outcomes has their shape. */
function outcomesOf(copied: JsonObject): Readonly<Record<string, BranchOutcome>> {
  return copied as unknown as Readonly<Record<string, BranchOutcome>>
}
