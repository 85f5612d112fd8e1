import type { TaskCall } from '../job/job.ts'
import { FirstInOrder } from '../ports/first-in-order.ts'
import { costOf, hasFreeSlot, slotsOf } from './demand.ts'
import type { Candidate } from './demand.ts'
import { match } from './match.ts'
import type { Mismatch } from './match.ts'
import { describeMismatch, describeShared } from './mismatch.ts'
import { compareRanked, decisive, rankOf } from './rank.ts'
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

/** What keeps so many workers out that have the skill. */
interface Obstacle extends Omit<Mismatch, 'has'> {
  readonly count: number
}

/** The summary as data, for those who say it in another language. */
type ChoiceReason =
  | { readonly code: 'no_workers'; readonly values: Readonly<Record<string, never>> }
  | { readonly code: 'no_skill'; readonly values: { readonly skill: string } }
  | {
      readonly code: 'none_fits'
      readonly values: {
        readonly skill: string
        readonly skilled: number
        readonly obstacles: readonly Obstacle[]
        /** There are obstacles of further kinds. */
        readonly isMore: boolean
      }
    }
  | {
      readonly code: 'only_one'
      readonly values: { readonly worker: string; readonly skill: string; readonly skilled: number }
    }
  | {
      readonly code: 'best'
      readonly values: {
        readonly worker: string
        readonly candidates: number
        readonly strategy: string
        /** Who would be chosen without it. */
        readonly next: string
        /** In what it goes before that one, by the name of the criterion; `id` where they are equal in everything. */
        readonly criterion: string
      }
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
  readonly reason: ChoiceReason
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
  /** Who got the last task of this type, for strategies that rotate. */
  readonly last?: string | undefined
  readonly strategies?: Strategies
  /** Workers listed at most; 100, because a reply about 10,000 workers is 2 MB, too long to read. */
  readonly workersMax?: number
}

interface Filtered {
  readonly worker: Candidate['worker']
  /** Never empty; what lasts longest comes first. */
  readonly mismatches: readonly [Mismatch, ...Mismatch[]]
}

/** Kinds of obstacle named in a summary; the workers themselves are listed with all of theirs. */
const OBSTACLES_MAX = 5

/** What keeps workers out that have the skill, by what they have in common. */
class Obstacles {
  readonly #groups = new Map<string, { readonly mismatch: Mismatch; count: number }>()

  add(mismatch: Mismatch): void {
    const key = describeShared(mismatch, 1)
    const group = this.#groups.get(key)
    if (group === undefined) this.#groups.set(key, { mismatch, count: 1 })
    else group.count += 1
  }

  /** The largest, and whether there are more kinds. */
  largest(): { readonly obstacles: readonly Obstacle[]; readonly isMore: boolean } {
    const largest = this.#sorted().map(({ mismatch: { has: _, ...lack }, count }) => ({ ...lack, count }))
    return { obstacles: largest, isMore: this.#groups.size > OBSTACLES_MAX }
  }

  describe(): string {
    const parts = this.#sorted().map(({ mismatch, count }) => describeShared(mismatch, count))
    if (this.#groups.size > OBSTACLES_MAX) parts.push('and others lack something else')
    return parts.join(', ')
  }

  #sorted(): readonly { readonly mismatch: Mismatch; readonly count: number }[] {
    return [...this.#groups.values()].sort((a, b) => b.count - a.count).slice(0, OBSTACLES_MAX)
  }
}

export function explain(call: TaskCall, workers: Iterable<Candidate>, options: ExplainOptions = {}): Explanation {
  const explainer = new Explainer(call, options)
  for (const candidate of workers) explainer.look(candidate)
  return explainer.end()
}

/** The same piece by piece: a look at 50,000 workers takes longer than everybody else should wait. */
export class Explainer {
  readonly #call: TaskCall
  readonly #exclude: readonly string[]
  readonly #workersMax: number
  readonly #strategy: Strategy
  readonly #question: Question
  readonly #fitting: FirstInOrder<Ranked>
  readonly #skilled: Filtered[] = []
  readonly #unskilled: Filtered[] = []
  readonly #obstacles = new Obstacles()
  #skilledCount = 0
  #live = 0

  constructor(call: TaskCall, options: ExplainOptions = {}) {
    const { exclude = [], last, strategies = STRATEGIES, workersMax = 100 } = options
    this.#call = call
    this.#exclude = exclude
    this.#workersMax = workersMax
    this.#strategy = strategyNamed(call.strategy, strategies)
    this.#question = questionOf(call, last)
    // Two at least: the best is compared with the next.
    this.#fitting = new FirstInOrder(Math.max(2, workersMax), compareRanked)
  }

  look(candidate: Candidate): void {
    this.#live += 1
    const filtered = filter(this.#call, candidate, this.#exclude)
    if (filtered === undefined) {
      this.#fitting.add(rankOf(this.#strategy, candidate, this.#question))
      return
    }
    const isUnskilled = filtered.mismatches[0].reason === 'skill'
    const listed = isUnskilled ? this.#unskilled : this.#skilled
    if (listed.length < this.#workersMax) listed.push(filtered)
    if (isUnskilled) return
    this.#skilledCount += 1
    this.#obstacles.add(filtered.mismatches[0])
  }

  end(): Explanation {
    const ranked = this.#fitting.first()
    const [best] = ranked
    const candidates = this.#fitting.count
    const skilled = this.#skilledCount + candidates
    const verdicts = [
      ...ranked.map((one, index) => placed(one.candidate, index + 1, this.#question)),
      ...this.#skilled.map(refused),
      ...this.#unskilled.map(refused),
    ].slice(0, this.#workersMax)
    return {
      type: this.#call.type,
      strategy: this.#strategy.name,
      criteria: [...this.#strategy.criteria.map((criterion) => criterion.name), 'id'],
      chosen: best === undefined ? null : best.candidate.worker.id,
      ...(best === undefined
        ? this.#whyNobody()
        : whyChosen(this.#strategy, best, { next: ranked[1], candidates, skilled, question: this.#question })),
      live: this.#live,
      skilled,
      candidates,
      workers: verdicts,
      omitted: this.#live - verdicts.length,
    }
  }

  #whyNobody(): Said {
    const { type: skill } = this.#call
    const skilled = this.#skilledCount
    if (this.#live === 0) return { summary: 'No worker is live.', reason: { code: 'no_workers', values: {} } }
    if (skilled === 0) {
      return { summary: `No live worker has the skill '${skill}'.`, reason: { code: 'no_skill', values: { skill } } }
    }
    const who = skilled === 1 ? 'worker has' : 'workers have'
    const summary = `${skilled} ${who} the skill '${skill}'; ${this.#obstacles.describe()}.`
    return { summary, reason: { code: 'none_fits', values: { skill, skilled, ...this.#obstacles.largest() } } }
  }
}

type Said = Pick<Explanation, 'summary' | 'reason'>

function filter(call: TaskCall, candidate: Candidate, exclude: readonly string[]): Filtered | undefined {
  const { worker, load } = candidate
  const mismatches = match(call, worker)
  if (exclude.includes(worker.id)) mismatches.push({ reason: 'excluded', needed: 'another worker', has: worker.id })
  if (!hasFreeSlot(candidate)) mismatches.push({ reason: 'slots', needed: slotsOf(candidate), has: load })
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

interface Field {
  readonly next: Ranked | undefined
  readonly candidates: number
  readonly skilled: number
  readonly question: Question
}

function whyChosen(strategy: Strategy, best: Ranked, { next, candidates, skilled, question }: Field): Said {
  const { id } = best.candidate.worker
  const { type: skill } = question
  if (next === undefined) {
    const summary = `'${id}' is chosen: of ${skilled} with the skill '${skill}' it alone can take the task now.`
    return { summary, reason: { code: 'only_one', values: { worker: id, skill, skilled } } }
  }
  const { id: nextId } = next.candidate.worker
  const criterion = decisive(strategy, best, next)
  const because =
    criterion === undefined
      ? `is equal to '${nextId}' in everything, and its id comes first`
      : criterion.because(best.candidate, next.candidate, question)
  const values = { worker: id, candidates, strategy: strategy.name, next: nextId, criterion: criterion?.name ?? 'id' }
  return {
    summary: `'${id}' is chosen of ${candidates} candidates by '${strategy.name}': it ${because}.`,
    reason: { code: 'best', values },
  }
}
