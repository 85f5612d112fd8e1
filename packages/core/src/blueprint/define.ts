import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { DataObject, Duration, EventType, Schema } from '@impresario/protocol'
import type { LooseData } from './actions.ts'
import type { RunnableBlueprint } from './blueprint.ts'
import type { LooseHistory } from './context.ts'
import { durationMs } from './duration.ts'
import type { BranchProblem, FanOut } from './outcome.ts'
import { runnable } from './runnable.ts'
import type { ScriptPolicy } from './script.ts'
import { stateBuilders } from './states.ts'
import type { AnyState, StateBuilders, StateDefinition } from './states.ts'

/** What a migration function gets to see of a job that began under an older version. */
export interface MigratingJob {
  readonly state: string
  readonly stateHistory: LooseHistory
  readonly blueprintVersion: number
  readonly initialData: DataObject
}

export interface PolicyOverrides {
  /** States that a job may enter before it counts as a loop. */
  readonly transitionsMax?: number
  readonly handlerAttemptsMax?: number
  readonly taskAttemptsMax?: number
  readonly backoffMs?: number
  readonly backoffMsMax?: number
  /** From the first dispatch to the result, for tasks that name none. */
  readonly resultTimeout?: Duration
  /** From a worker's pickup to the result, for tasks that name no timeout. Five minutes without any. */
  readonly runTimeout?: Duration
  /** Whether a task is tried again after a run or result timeout. Without it the job fails then. */
  readonly retryTimeouts?: boolean
  /** Longest life of a job. */
  readonly executionTimeout?: Duration
}

export interface BlueprintShape<
  Given,
  Data,
  History,
  Output,
  Stores extends object,
  Start extends string,
> extends PolicyOverrides {
  /** Checks the initial data of every job, and types it. */
  readonly input?: Schema<Given, Data>
  /** Checks the state history at each turn, and types it. Its keys may be missing: each is there once it was written. */
  readonly history?: Schema<unknown, History>
  /** Checks the result of jobs that finish, and types it. */
  readonly output?: Schema<unknown, Output>
  /** The events that its jobs wait for. What is sent is checked against them at the door; without it, anything goes. */
  readonly events?: readonly EventType[]
  readonly start: Start
  readonly dataStores?: Stores
  /** Raise it when jobs in flight could not go on under the new script. 1 without it. */
  readonly version?: number
  /** The path under which clients start it. */
  readonly endpoint?: string
  /** The version of your API that the endpoint belongs to: `v2` makes it /api/v2/… instead of /api/v1/…. */
  readonly apiVersion?: string
  /** How a job of an older version goes on under this one; `undefined` when it cannot. */
  readonly migrate?: (job: MigratingJob) => { readonly state: string; readonly stateHistory: LooseData } | undefined
}

/** A blueprint with the types that its callers need. */
export interface Blueprint<
  Name extends string = string,
  Given = unknown,
  Output = unknown,
  StateName extends string = string,
> extends RunnableBlueprint {
  readonly name: Name
  /** For the compiler only; never there when the program runs. */
  readonly '~types'?: { readonly input: Given; readonly output: Output; readonly state: StateName }
}

type States = Readonly<Record<string, AnyState>>

/** A state history as handlers find it: any key may not have been written yet. */
type Written<History> = 0 extends 1 & History ? History : Partial<History>

/** An error in place of each state that leads to a state which is not there; `failed` always is. */
type Checked<S> = {
  readonly [K in keyof S]: S[K] extends StateDefinition<infer To, infer Fan, unknown>
    ? [Exclude<To, keyof S | 'failed'>] extends [never]
      ? [FanProblem<S, Fan> | PlainProblem<S, K, To, Fan>] extends [never]
        ? unknown
        : { readonly error: FanProblem<S, Fan> | PlainProblem<S, K, To, Fan> }
      : string extends To
        ? { readonly error: `"${K & string}" has targets that are not literals: declare them with { to: [...] }` }
        : { readonly error: `"${K & string}" leads to unknown state "${Exclude<To, keyof S | 'failed'> & string}"` }
    : never
}

/** The states that say what they gather. */
type GatheringIn<S> = {
  [K in keyof S]: S[K] extends StateDefinition<string, unknown, infer Sources>
    ? [Sources] extends [never]
      ? never
      : K
    : never
}[keyof S]

/** What is wrong with the branches that a state sends out. */
type FanProblem<S, Fan> =
  Fan extends FanOut<infer Into extends GatheringIn<S> & string, infer Calls>
    ? S[Into] extends StateDefinition<string, unknown, infer Sources>
      ? BranchProblem<Into, Sources, Calls>
      : never
    : never

type IntoOf<Fan> = Fan extends FanOut<infer Into> ? Into : never

/** A state that leads to such an aggregator without a fan-out. */
type PlainProblem<S, K, To, Fan> =
  Exclude<Extract<To, GatheringIn<S>>, IntoOf<Fan>> extends infer Into
    ? Into extends string
      ? `"${K & string}" leads to "${Into}" without its branches: use dispatchParallel({ … }, { into: '${Into}' })`
      : never
    : never

/**
 * Describes a job as states and the code that leads from one to the next.
 *
 * What is wrong in itself is refused here; targets and reachability are checked when the blueprint
 * is registered.
 */
export function blueprint<
  const Name extends string,
  const S extends States,
  Given = LooseData,
  Data = DataObject,
  History = LooseHistory,
  Output = unknown,
  Stores extends object = object,
>(
  name: Name,
  shape: BlueprintShape<Given, Data, History, Output, Stores, NoInfer<keyof S & string>>,
  states: (state: StateBuilders<Data, Written<History>, Stores, Output>) => S & Checked<S>,
): Blueprint<Name, Given, Output, keyof S & string> {
  checkName(name)
  return runnable(name, {
    version: versionOf(name, shape.version),
    start: shape.start,
    endpoint: shape.endpoint,
    apiVersion: apiVersionOf(name, shape.apiVersion),
    ownPolicy: policyOf(name, shape),
    input: shape.input,
    history: shape.history,
    output: shape.output,
    events: shape.events,
    dataStores: shape.dataStores ?? {},
    migrate: shape.migrate,
    states: states(stateBuilders<Data, Written<History>, Stores, Output>()),
  })
}

const NAME = /^[A-Za-z_][\w.-]*$/

function checkName(name: unknown): void {
  if (typeof name === 'string' && NAME.test(name) && name.length <= LIMITS.identifierCharsMax) return
  throw new ImpresarioError(
    'INVALID_BLUEPRINT',
    `Blueprint ${JSON.stringify(name)}: a name begins with a letter and goes on with letters, digits, "_", "-" or ".", ` +
      `at most ${LIMITS.identifierCharsMax} characters.`,
  )
}

function versionOf(name: string, version = 1): number {
  return positive(name, 'version', version, Number.MAX_SAFE_INTEGER)
}

function apiVersionOf(name: string, apiVersion: string | undefined): string | undefined {
  if (apiVersion === undefined || API_VERSION.test(apiVersion)) return apiVersion
  throw new ImpresarioError(
    'INVALID_BLUEPRINT',
    `Blueprint "${name}": apiVersion is ${JSON.stringify(apiVersion)}. It is one part of a path, such as "v2".`,
  )
}

const API_VERSION = /^v\d[\w.-]{0,30}$/

/** Only what was given: what was not stays apart from the defaults, so that the program's configuration may fill it in. */
function policyOf(name: string, given: PolicyOverrides): Partial<ScriptPolicy> {
  const own: { -readonly [K in keyof ScriptPolicy]?: ScriptPolicy[K] } = {}
  for (const [key, max] of COUNTS) {
    const value = given[key]
    if (value !== undefined) own[key] = positive(name, key, value, max)
  }
  for (const [key, ownKey] of SPANS) {
    const value = given[key]
    if (value !== undefined) own[ownKey] = durationMs(value, `Blueprint "${name}": ${key}`)
  }
  const { retryTimeouts } = given
  if (retryTimeouts !== undefined) own.retryTimeouts = flag(name, 'retryTimeouts', retryTimeouts)
  return own
}

const COUNTS = [
  ['transitionsMax', LIMITS.transitionsMaxCeiling],
  ['handlerAttemptsMax', 100],
  ['taskAttemptsMax', 100],
] as const

const SPANS = [
  ['backoffMs', 'backoffMs'],
  ['backoffMsMax', 'backoffMsMax'],
  ['resultTimeout', 'resultTimeoutMs'],
  ['runTimeout', 'runTimeoutMs'],
  ['executionTimeout', 'executionTimeoutMs'],
] as const

function flag(name: string, key: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw new ImpresarioError('INVALID_BLUEPRINT', `Blueprint "${name}": ${key} is ${String(value)}. Give true or false.`)
}

function positive(name: string, key: string, value: number, max: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new ImpresarioError(
    'INVALID_BLUEPRINT',
    `Blueprint "${name}": ${key} is ${String(value)}. Give a whole number from 1 to ${max}.`,
  )
}

/** Says whether a value is a blueprint, also one that another copy of this package made. */
export function isBlueprint(value: unknown): value is Blueprint {
  if (typeof value !== 'object' || value === null) return false
  const fields: Partial<Record<keyof RunnableBlueprint, unknown>> = value
  return (
    typeof fields.name === 'string' &&
    typeof fields.version === 'number' &&
    typeof fields.state === 'function' &&
    typeof fields.perform === 'function' &&
    Array.isArray(fields.nodes)
  )
}
