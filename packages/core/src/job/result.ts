import { isJsonObject } from '@impresario/protocol'
import type { Json, JsonObject, TaskError } from '@impresario/protocol'
import { jsonSize } from '../blueprint/json-copy.ts'
import type { BranchOutcome, Call, Job } from './job.ts'

/**
 * How the newest call of a state ended. A state makes one call for each visit, so that its name is the name of the result, and
 * calls of two states never replace each other.
 *
 * A value is stored once. What the call gave is merged into `stateHistory`, and while it stands there unchanged, the result
 * only refers to it (`keys`, `at`). When something else is written over it, the old value moves into `data`.
 */
export interface StateResult {
  readonly state: string
  /** The type of the task, or the name of the blueprint. */
  readonly of: string
  /** `of` is a blueprint. */
  readonly isChild?: boolean | undefined
  /** `success` without it. */
  readonly status?: string | undefined
  readonly error?: TaskError | undefined
  /** Keys of `stateHistory` whose values are a part of the result. */
  readonly keys?: readonly string[] | undefined
  /** The key of `stateHistory` whose value is the whole result. */
  readonly at?: string | undefined
  /** The result, or the part of it that is not in `stateHistory`. */
  readonly data?: Json | undefined
  /** It was too large to be kept beside what replaced it in `stateHistory`. */
  readonly isDropped?: boolean | undefined
}

type Results = readonly StateResult[]

/** The name under which a result is found. */
function calledName(call: Call): string {
  return call.kind === 'task' ? call.type : call.blueprint
}

/** The results with one more, which replaces an older one of the same state. Newest last. */
export function addResult({ results = [], state }: Job, call: Call, outcome: BranchOutcome): Results {
  const { status, error } = outcome
  const added: StateResult = {
    state,
    of: calledName(call),
    ...(call.kind === 'child' ? { isChild: true } : {}),
    ...(status === 'success' ? {} : { status }),
    ...(error === undefined ? {} : { error }),
    ...placeOf(call, outcome.data),
  }
  return [...results.filter((result) => result.state !== state), added]
}

/** Where the data of a call goes in the state history: see `mergeData`. */
function placeOf(call: Call, data: Json | undefined): Pick<StateResult, 'keys' | 'at' | 'data'> {
  if (data === undefined) return {}
  if (call.kind === 'child') return { at: call.blueprint }
  if (data === null) return { data }
  return isJsonObject(data) ? { keys: Object.keys(data) } : { at: call.type }
}

/** What a result was, whatever has become of the state history since. */
export function dataOf({ keys, at, data }: StateResult, history: JsonObject): Json | undefined {
  if (at !== undefined) return own(history, at)
  if (keys === undefined) return data
  const parts = keys.flatMap((key): [string, Json][] => {
    const value = own(history, key)
    return value === undefined ? [] : [[key, value]]
  })
  return { ...(isJsonObject(data) ? data : {}), ...Object.fromEntries(parts) }
}

function own(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

interface Step {
  readonly before: Pick<Job, 'results' | 'stateHistory'>
  readonly after: Pick<Job, 'results' | 'stateHistory'>
  /** What all results together may take. */
  readonly bytesMax: number
}

/**
 * The results after a step that may have written over values that they refer to. `dropped`: those that had to go because all
 * together they would take more than they may.
 */
export function preserveResults({ before, after, bytesMax }: Step): {
  readonly results: Results
  readonly dropped: Results
} {
  const { results = [], stateHistory } = after
  const known = new Set(before.results)
  const kept = results.map((result) =>
    known.has(result) && before.stateHistory !== stateHistory
      ? withoutOverwritten(result, before.stateHistory, stateHistory)
      : result,
  )
  return bounded(kept, bytesMax)
}

function withoutOverwritten(result: StateResult, before: JsonObject, after: JsonObject): StateResult {
  const { at, keys, data: _data, ...rest } = result
  const isOverwritten = (key: string): boolean => !isSame(own(before, key), own(after, key))
  if (at !== undefined) return isOverwritten(at) ? { ...rest, data: own(before, at) } : result
  if (keys === undefined) return result
  const gone = new Set(keys.filter(isOverwritten))
  if (gone.size === 0) return result
  const moved = dataOf({ ...result, keys: [...gone] }, before)
  return { ...rest, keys: keys.filter((key) => !gone.has(key)), data: moved }
}

/** The results that a job had when it entered this state for the last time, as far as its trail goes back. */
export function resultsUpTo({ results, trail }: Pick<Job, 'results' | 'trail'>, state: string): Job['results'] {
  const started = trail.filter(({ event }) => event === 'state_started').map((entry) => entry.state)
  const at = started.lastIndexOf(state)
  const place = results?.findIndex((result) => result.state === state) ?? -1
  // The first state of a job, and one that the trail no longer has, is known by its own result.
  if (at === -1) return place === -1 ? results : results?.slice(0, place)
  const [before, since] = [new Set(started.slice(0, at)), new Set(started.slice(at))]
  return results?.filter((result) => result.state !== state && (before.has(result.state) || !since.has(result.state)))
}

/** Oldest first: a handler most likely asks for what came last. */
function bounded(results: Results, bytesMax: number): { readonly results: Results; readonly dropped: Results } {
  const weighed = results.map((result) => ({ result, bytes: jsonSize(asJson(result)) }))
  let size = weighed.reduce((sum, { bytes }) => sum + bytes, 0)
  if (size <= bytesMax) return { results, dropped: [] }
  const dropped: StateResult[] = []
  const kept = weighed.map(({ result, bytes }): StateResult => {
    if (size <= bytesMax || result.isDropped === true) return result
    const { keys: _keys, at: _at, data: _data, error: _error, ...rest } = result
    size -= bytes
    dropped.push(result)
    return { ...rest, isDropped: true }
  })
  return { results: kept, dropped }
}

/** Boundary: results are stored with their job, as JSON. */
function asJson(result: StateResult): JsonObject {
  return result as unknown as JsonObject
}

/** Whether two stored values are the same JSON. Keys may stand in another order: some storages keep their own. */
function isSame(left: Json | undefined, right: Json | undefined): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left) !== Array.isArray(right)) return false
  const entries: readonly (readonly [string, Json])[] = Object.entries(left)
  const other: JsonObject = right as JsonObject
  return (
    entries.length === Object.keys(other).length &&
    entries.every(([key, value]) => Object.hasOwn(other, key) && isSame(value, other[key]))
  )
}
