import type { TaskCall } from '../job/job.ts'
import { costOf, hasFreeSlot } from './demand.ts'
import type { Candidate } from './demand.ts'
import { match } from './match.ts'
import type { Mismatch } from './match.ts'
import { describeMismatch, describeShared } from './mismatch.ts'
import { decisive, rank } from './rank.ts'
import type { Ranked } from './rank.ts'
import { STRATEGIES, isWarm, questionOf, strategyNamed } from './strategies.ts'
import type { Question, Strategies, Strategy } from './strategies.ts'

/** What became of one worker in a choice. */
export type Verdict =
  | {
      readonly workerId: string
      readonly verdict: 'candidate'
      /** 1 for the one that is chosen. */
      readonly place: number
      /** The cost is null when the worker names no price. */
      readonly score: {
        readonly warm: boolean
        readonly cost: number | null
        readonly reputation: number
        readonly load: number
      }
    }
  | {
      readonly workerId: string
      readonly verdict: 'filtered'
      readonly mismatches: readonly Mismatch[]
      /** The same as sentences. */
      readonly reasons: readonly string[]
    }

/** An answer to "who would get this task, and why does it wait?", ready to be sent as JSON. */
export interface Explanation {
  readonly type: string
  readonly strategy: string
  /** What the strategy looks at, the weightiest first. */
  readonly criteria: readonly string[]
  readonly chosen: string | null
  /** One or two sentences for people. */
  readonly summary: string
  readonly live: number
  readonly skilled: number
  readonly candidates: number
  /** Candidates by place, then filtered workers with the skill, then the others. */
  readonly workers: readonly Verdict[]
  /** Workers that are counted above but not listed. */
  readonly omitted: number
}

export interface ExplainOptions {
  readonly exclude?: readonly string[]
  /** Who got the last task of this type, for strategies that take turns. */
  readonly last?: string | undefined
  readonly strategies?: Strategies
  /** Workers listed at most; 100, because an answer about 10,000 workers is 2 MB and nobody reads it. */
  readonly workersMax?: number
}

interface Filtered {
  readonly worker: Candidate['worker']
  /** Never empty; what lasts longest comes first. */
  readonly mismatches: readonly [Mismatch, ...Mismatch[]]
}

export function explain(call: TaskCall, workers: Iterable<Candidate>, options: ExplainOptions = {}): Explanation {
  const { exclude = [], last, strategies = STRATEGIES, workersMax = 100 } = options
  const strategy = strategyNamed(call.strategy, strategies)
  const question = questionOf(call, last)
  const fitting: Candidate[] = []
  const skilled: Filtered[] = []
  const unskilled: Filtered[] = []
  for (const candidate of workers) {
    const filtered = filter(call, candidate, exclude)
    if (filtered === undefined) fitting.push(candidate)
    else if (filtered.mismatches[0].reason === 'skill') unskilled.push(filtered)
    else skilled.push(filtered)
  }
  const ranked = rank(strategy, fitting, question)
  const [best] = ranked
  const skilledCount = skilled.length + ranked.length
  const live = skilledCount + unskilled.length
  const verdicts = [
    ...ranked.slice(0, workersMax).map((one, index) => placed(one.candidate, index + 1, question)),
    ...skilled.slice(0, workersMax).map(refused),
    ...unskilled.slice(0, workersMax).map(refused),
  ].slice(0, workersMax)
  return {
    type: call.type,
    strategy: strategy.name,
    criteria: [...strategy.criteria.map((criterion) => criterion.name), 'id'],
    chosen: best === undefined ? null : best.candidate.worker.id,
    summary:
      best === undefined
        ? whyNobody(call.type, live, skilled)
        : whyChosen(strategy, best, ranked, skilledCount, question),
    live,
    skilled: skilledCount,
    candidates: ranked.length,
    workers: verdicts,
    omitted: live - verdicts.length,
  }
}

function filter(call: TaskCall, candidate: Candidate, exclude: readonly string[]): Filtered | undefined {
  const { worker, load } = candidate
  const mismatches = match(call, worker)
  if (exclude.includes(worker.id)) mismatches.push({ reason: 'excluded', needed: 'another worker', has: worker.id })
  if (!hasFreeSlot(candidate)) mismatches.push({ reason: 'slots', needed: worker.concurrencyMax, has: load })
  const [first, ...rest] = mismatches
  return first === undefined ? undefined : { worker, mismatches: [first, ...rest] }
}

function placed({ worker, load }: Candidate, place: number, question: Question): Verdict {
  const score = {
    warm: isWarm(worker, question),
    cost: costOf(worker, question.type) ?? null,
    reputation: worker.reputation,
    load,
  }
  return { workerId: worker.id, verdict: 'candidate', place, score }
}

function refused({ worker, mismatches }: Filtered): Verdict {
  return { workerId: worker.id, verdict: 'filtered', mismatches, reasons: mismatches.map(describeMismatch) }
}

function whyChosen(
  strategy: Strategy,
  best: Ranked,
  ranked: readonly Ranked[],
  skilled: number,
  question: Question,
): string {
  const { id } = best.candidate.worker
  const next = ranked[1]
  if (next === undefined) {
    return `'${id}' is chosen: of ${skilled} with the skill '${question.type}' it alone can take the task now.`
  }
  const criterion = decisive(strategy, best, next)
  const because =
    criterion === undefined
      ? `is equal to '${next.candidate.worker.id}' in everything, and its id comes first`
      : criterion.because(best.candidate, next.candidate, question)
  return `'${id}' is chosen of ${ranked.length} candidates by '${strategy.name}': it ${because}.`
}

/** Kinds of obstacle named in a summary; the workers themselves are listed with all of theirs. */
const OBSTACLES_MAX = 5

function whyNobody(type: string, live: number, skilled: readonly Filtered[]): string {
  if (live === 0) return 'No worker is live.'
  if (skilled.length === 0) return `No live worker has the skill '${type}'.`
  const groups = new Map<string, { readonly mismatch: Mismatch; count: number }>()
  for (const { mismatches } of skilled) {
    const [mismatch] = mismatches
    const key = describeShared(mismatch, 1)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { mismatch, count: 1 })
    else group.count += 1
  }
  const largest = [...groups.values()].sort((a, b) => b.count - a.count).slice(0, OBSTACLES_MAX)
  const parts = largest.map(({ mismatch, count }) => describeShared(mismatch, count))
  if (groups.size > OBSTACLES_MAX) parts.push('and others lack something else')
  return `${skilled.length} ${skilled.length === 1 ? 'worker has' : 'workers have'} the skill '${type}'; ${parts.join(', ')}.`
}
