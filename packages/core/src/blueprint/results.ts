import { ImpresarioError, isTaskContract } from '@impresario/protocol'
import type { Json, TaskError } from '@impresario/protocol'
import type { BranchOutcome, Job } from '../job/job.ts'
import { dataOf } from '../job/result.ts'
import type { StateResult } from '../job/result.ts'
import { storedCopy } from './json-copy.ts'
import type { BranchSources, ResultReader, ResultSource } from './outcome.ts'

/** How a call ended, before the compiler knows what its data is. */
interface RawOutcome {
  readonly status: string
  readonly data?: unknown
  readonly error?: TaskError | undefined
}

type Asked = { readonly from?: string; readonly status?: string } | undefined

/** Boundary: results are what their contract or blueprint says, which was checked when they came in. */
export function resultReader(job: Job, isState: (name: string) => boolean): ResultReader {
  const misuse = (sentence: string) => refusal(job, sentence)
  const find = (source: ResultSource, given: Asked, method: string): StateResult | undefined => {
    const from = given?.from
    if (from !== undefined && !isState(from)) {
      throw misuse(`calls ${method} with from: "${from}", which is not a state of this blueprint. Correct the name.`)
    }
    const { name, kind } = sourceOf(source, job, method)
    return job.results?.findLast(
      (result) =>
        result.of === name &&
        (from === undefined || result.state === from) &&
        (kind === undefined || (result.isChild === true) === (kind === 'child')),
    )
  }
  const reader = {
    resultOf: (source: ResultSource, given?: Asked) => {
      const found = find(source, given, 'resultOf')
      const { name } = sourceOf(source, job, 'resultOf')
      if (found === undefined) throw misuse(missing(name, given?.from, job))
      const wanted = given?.status ?? 'success'
      const { status, data } = outcomeIn(found, source, job)
      if (status === wanted) return data
      throw misuse(
        `asks for the result of "${name}" with the status "${wanted}", but it ended in "${found.state}" with "${status}". ` +
          `Ask for { status: '${status}' }, or look at outcomeOf(…) where several statuses lead.`,
      )
    },
    outcomeOf: (source: ResultSource, given?: Asked) => {
      const found = find(source, given, 'outcomeOf')
      return found && outcomeIn(found, source, job)
    },
  }
  return reader as unknown as ResultReader
}

function missing(name: string, from: string | undefined, { results = [] }: Job): string {
  const known = results.map((result) => `"${result.of}" in "${result.state}"`).join(', ')
  const where = from === undefined ? 'no state of this job has given' : `the state "${from}" has not given in this job`
  return (
    `asks for the result of "${name}", which ${where}. ` +
    `${known === '' ? 'There is none yet' : `There are: ${known}`}. ` +
    'Ask for it only where the task always came before, or use outcomeOf(…), which gives undefined.'
  )
}

function outcomeIn(result: StateResult, source: ResultSource, job: Job): RawOutcome {
  const { of, state, status = 'success', error } = result
  if (result.isDropped === true) {
    throw refusal(
      job,
      `asks for the result of "${of}" in "${state}", which was dropped: the results of this job are too large together. ` +
        'Return references to files, or keep what you need in stateHistory.',
    )
  }
  return outcomeOf({ status, data: dataOf(result, job.stateHistory), error }, source)
}

/** A status that the contract does not have is no outcome of it. Workers in other languages may send any. */
function outcomeOf({ status, data, error }: BranchOutcome, source: ResultSource): RawOutcome {
  if (isTaskContract(source) && !KNOWN.has(status) && !Object.hasOwn(source.outcomes, status)) {
    const message = `"${source.name}" ended with the status "${status}", which its contract does not have.`
    return { status: 'failure', error: { code: 'CONTRACT_VIOLATION_ERROR', message } }
  }
  return {
    status,
    ...(data === undefined ? {} : { data: storedCopy<Json>(data) }),
    ...(error === undefined ? {} : { error: { ...error } }),
  }
}

const KNOWN = new Set(['success', 'failure', 'cancelled'])

interface Named {
  readonly name: string
  readonly kind: 'task' | 'child' | undefined
}

function sourceOf(source: unknown, place: StateLocation, method: string): Named {
  if (typeof source === 'string') return { name: source, kind: undefined }
  if (isTaskContract(source)) return { name: source.name, kind: 'task' }
  const name = typeof source === 'object' && source !== null && 'name' in source ? source.name : undefined
  if (typeof name === 'string') return { name, kind: 'child' }
  throw refusal(
    place,
    `calls ${method} without a task or a blueprint. Give an entry of a contract, a blueprint, or its name.`,
  )
}

// ── Branches ─────────────────────────────────────────────────────────────────

/** What an aggregator gathers under each name: one branch, or any number. */
export function gatheredNames(sources: BranchSources, place: StateLocation): Readonly<Record<string, 'one' | 'many'>> {
  const names = Object.entries(sources).map(([name, source]) => {
    sourceOf(sourceIn(source), place, `aggregator with the branch "${name}"`)
    return [name, isList(source) ? 'many' : 'one'] as const
  })
  return Object.fromEntries(names)
}

/** How each branch ended, by its name. */
export function gatheredResults(sources: BranchSources, job: Job): object {
  const outcomes = Object.values(job.aggregationResults ?? {})
  const results = Object.entries(sources).map(([name, source]): [string, unknown] => {
    const own = outcomes.filter(({ as }) => as === name).map((outcome) => outcomeOf(outcome, sourceIn(source)))
    if (isList(source)) return [name, Object.freeze(own)]
    const [only] = own
    if (only !== undefined) return [name, only]
    throw refusal(
      job,
      `gathers the branch "${name}", but the fan-out that led to it sent none. Name it in dispatchParallel; ` +
        'for a job that began before the branch had a name, raise the version of the blueprint.',
    )
  })
  return Object.freeze<object>(Object.fromEntries(results))
}

function isList(source: BranchSources[string]): source is readonly [ResultSource] {
  return Array.isArray(source)
}

function sourceIn(source: BranchSources[string]): ResultSource {
  return isList(source) ? source[0] : source
}

/** A job in its state, or the state of a blueprint. */
export type StateLocation = Pick<Job, 'blueprint' | 'state'>

function refusal({ blueprint, state }: StateLocation, sentence: string): ImpresarioError {
  return new ImpresarioError('INVALID_BLUEPRINT', `Blueprint "${blueprint}", state "${state}": ${sentence}`)
}
