import { ImpresarioError } from '@impresario/protocol'
import type { DataObject, EventType, JsonObject, SchemaOutput, TaskFiles } from '@impresario/protocol'
import type { BranchOutcome, Compensation, Job, JobFailure, Outcome } from '../job/job.ts'
import type { Log } from '../ports/runtime.ts'
import type { TurnInput } from './blueprint.ts'
import type { BranchResults, BranchSources, ResultReader } from './outcome.ts'
import { storedCopy } from './json-copy.ts'
import { LateFiles, LateLog } from './late-input.ts'
import { gatheredResults, resultReader } from './results.ts'

/**
 * The state history of a blueprint that declares no `history` schema. States write to it freely and
 * worker results are merged into it, so its keys are not known: this is the one place of the public
 * API where the compiler checks nothing. Declare `history` to get it checked.
 */
// oxlint-disable-next-line typescript/no-explicit-any
export type LooseHistory = any

/** What a handler knows. Everything in it is a copy: only `stateHistory` finds its way back into the job. */
export interface Context<Data = DataObject, History = LooseHistory, Stores = object> extends ResultReader {
  readonly jobId: string
  readonly currentState: string
  readonly initialData: Data
  /** Shared by all states of the job. What the handler leaves in it is stored with its action. */
  readonly stateHistory: History
  /** Values of the state history that have to be there. Throws when one is missing. */
  readonly written: <const Key extends keyof History & string>(...keys: readonly Key[]) => Required<Pick<History, Key>>
  readonly client: { readonly id: string; readonly plan: string | undefined; readonly params: DataObject }
  readonly dataStores: Stores
  /** Why the job is in this state, when a failure, a timeout or a rejection led here. Absent once the job has gone on. */
  readonly failure: JobFailure | undefined
  /** The event that led to this state, if one did. Absent once the job has gone on. */
  readonly event: ReceivedEvent | undefined
  /** What that event brought. Throws when another event, or none, led to this state. */
  readonly eventOf: <E extends EventType>(type: E) => SchemaOutput<E['payload']>
  /** The trace that the job belongs to, to be passed on: `traceparent` and `tracestate`, if it came with any. */
  readonly tracingContext: Readonly<Record<string, string>>
  /** The former name of `tracingContext`. */
  readonly tracing: Readonly<Record<string, string>>
  /** Aborts when the handler's time is up or the job is cancelled. It is not part of a copy of the context: pass it on by its name. */
  readonly signal: AbortSignal
  /** The files of the job. Local copies go when the handler has answered. */
  readonly files: TaskFiles
  /** Writes to the server's log, with the job and its state. The newest lines are kept with the job. */
  readonly log: Log
}

export interface AggregatorContext<Data = DataObject, History = LooseHistory, Stores = object> extends Context<
  Data,
  History,
  Stores
> {
  /** What each branch gave, by its task id, in the order in which the branches were sent out. */
  readonly aggregationResults: Readonly<Record<string, BranchOutcome>>
}

/** In an undo. */
export interface UndoContext<Data = DataObject, History = LooseHistory, Stores = object> extends Context<
  Data,
  History,
  Stores
> {
  readonly undo: {
    /** The state that is undone. */
    readonly state: string
    /** False: it may not have been done. Its task timed out, or the job ended while it was under way. */
    readonly isCertain: boolean
    /** How the job ends once everything is undone, and why. */
    readonly outcome: Outcome
    readonly error: { readonly code: string; readonly message: string } | undefined
  }
}

/** In an aggregator that says what it gathers. */
export interface GatheringContext<
  Data = DataObject,
  History = LooseHistory,
  Stores = object,
  Sources = object,
> extends AggregatorContext<Data, History, Stores> {
  /** How each branch ended, by its name. */
  readonly results: BranchResults<Sources>
}

/** The context before the schemas lent it their types. */
export interface RawContext extends AggregatorContext<JsonObject, Record<string, unknown>> {
  /** In an aggregator that says what it gathers. */
  readonly results?: object
}

export interface ContextParts {
  readonly dataStores: object
  /** Whether the blueprint has such a state. */
  readonly isState: (name: string) => boolean
  /** What the state expects as an aggregator, if it says so. */
  readonly gathers?: BranchSources | undefined
}

/** What handlers of all kinds get. */
type Fields = Omit<RawContext, 'aggregationResults' | 'results' | 'signal'>

/**
 * The context of one handler run. A class, because an object with getters of its own takes microseconds to make. Only the signal
 * is a getter: it is dear to make, and most handlers never ask for it.
 */
class HandlerContext implements Omit<RawContext, 'aggregationResults'> {
  readonly #late: Pick<TurnInput, 'signal'>
  readonly jobId: string
  readonly currentState: string
  readonly initialData: JsonObject
  readonly stateHistory: Record<string, unknown>
  readonly resultOf: Fields['resultOf']
  readonly outcomeOf: Fields['outcomeOf']
  readonly written: Fields['written']
  readonly client: Fields['client']
  readonly dataStores: object
  readonly failure: JobFailure | undefined
  readonly event: ReceivedEvent | undefined
  readonly eventOf: Fields['eventOf']
  readonly tracingContext: Readonly<Record<string, string>>
  readonly tracing: Readonly<Record<string, string>>
  readonly files: TaskFiles
  readonly log: Log

  constructor(fields: Fields, late: Pick<TurnInput, 'signal'>) {
    this.#late = late
    this.jobId = fields.jobId
    this.currentState = fields.currentState
    this.initialData = fields.initialData
    this.stateHistory = fields.stateHistory
    this.resultOf = fields.resultOf
    this.outcomeOf = fields.outcomeOf
    this.written = fields.written
    this.client = fields.client
    this.dataStores = fields.dataStores
    this.failure = fields.failure
    this.event = fields.event
    this.eventOf = fields.eventOf
    this.tracingContext = fields.tracingContext
    this.tracing = fields.tracing
    this.files = fields.files
    this.log = fields.log
  }

  get signal(): AbortSignal {
    return this.#late.signal
  }
}

class WholeContext extends HandlerContext implements RawContext {
  readonly aggregationResults: Readonly<Record<string, BranchOutcome>>
  readonly results?: object

  constructor(fields: Fields, input: TurnInput, gathers: BranchSources | undefined) {
    super(fields, input)
    const { job } = input
    this.aggregationResults = outcomesOf(storedCopy(storedOutcomes(job.aggregationResults ?? {})))
    if (gathers !== undefined) this.results = gatheredResults(gathers, job)
  }
}

class UndoingContext extends HandlerContext {
  readonly undo: UndoContext['undo']

  constructor(context: RawContext, undo: UndoContext['undo']) {
    super(context, context)
    this.undo = undo
  }
}

/** Builds the context of one handler run from copies, so that user code cannot reach the stored job. */
export function contextOf(input: TurnInput, { dataStores, isState, gathers }: ContextParts): RawContext {
  const { job } = input
  const stateHistory = storedCopy(job.stateHistory)
  const tracingContext = { ...job.tracing }
  const { resultOf, outcomeOf } = resultReader(job, isState)
  const fields: Fields = {
    jobId: job.id,
    currentState: job.state,
    initialData: storedCopy(job.initialData),
    stateHistory,
    resultOf,
    outcomeOf,
    written: (...keys) => required(job, stateHistory, keys),
    client: { id: job.client.id, plan: job.client.plan, params: storedCopy(job.client.params ?? {}) },
    dataStores,
    failure: job.failure && structuredFailure(job.failure),
    event: eventIn(job),
    eventOf: (type) => payloadOf(job, type),
    tracingContext,
    tracing: tracingContext,
    files: new LateFiles(input),
    log: new LateLog(input),
  }
  return new WholeContext(fields, input, gathers)
}

/** What the handler of a state that is no aggregator gets. Frozen: a new `stateHistory` would be lost without a word. */
export function withoutResults(context: RawContext): Readonly<Omit<RawContext, 'aggregationResults'>> {
  return Object.freeze(new HandlerContext(context, context))
}

/** What an undo gets. */
export function undoContext(context: RawContext, { left, outcome, error }: Compensation): object {
  const isCertain = left[0]?.isCertain === true
  const why = error && { code: error.code, message: error.message }
  return Object.freeze(new UndoingContext(context, { state: context.currentState, isCertain, outcome, error: why }))
}

function structuredFailure({ task, child, ...failure }: JobFailure): JobFailure {
  return {
    ...failure,
    ...(task === undefined ? {} : { task: { ...task } }),
    ...(child === undefined ? {} : { child: { ...child } }),
  }
}

/** Boundary: the keys that were asked for, all there. */
function required<T>(
  { blueprint, state }: Job,
  history: Readonly<Record<string, unknown>>,
  keys: readonly string[],
): T {
  const values = keys.map((key) => [key, Object.hasOwn(history, key) ? history[key] : undefined] as const)
  const missing = values.filter(([, value]) => value === undefined).map(([key]) => `"${key}"`)
  if (missing.length === 0) return Object.fromEntries(values) as T
  throw new ImpresarioError(
    'INVALID_BLUEPRINT',
    `Blueprint "${blueprint}", state "${state}": asks for ${missing.join(', ')} of stateHistory, which no state of this job has written. ` +
      'Write it in an earlier state, or read stateHistory and handle the missing key.',
  )
}

/** An event as the handler that it led to sees it. */
export interface ReceivedEvent {
  readonly id: string
  readonly topic: string
  readonly payload: DataObject
  readonly key: string | undefined
}

function eventIn({ event }: Job): ReceivedEvent | undefined {
  return event && { id: event.id, topic: event.topic, payload: storedCopy(event.payload), key: event.key }
}

/** Boundary: what was sent was checked at the door, against the schema that the type has. */
function payloadOf<T>(job: Job, { topic }: EventType): T {
  const { event, state } = job
  if (event?.topic === topic) return storedCopy(event.payload) as T
  const found = event === undefined ? 'no event' : `the event "${event.topic}"`
  throw new ImpresarioError(
    'INVALID_BLUEPRINT',
    `Blueprint "${job.blueprint}", state "${state}": asks for the event "${topic}", but ${found} led here.`,
  )
}

/** Boundary: outcomes are stored with their job, as JSON. */
function storedOutcomes(outcomes: Readonly<Record<string, BranchOutcome>>): JsonObject {
  return outcomes as unknown as JsonObject
}

/** Boundary: a copy of branch outcomes has their shape. */
function outcomesOf(copied: JsonObject): Readonly<Record<string, BranchOutcome>> {
  return copied as unknown as Readonly<Record<string, BranchOutcome>>
}
