import type { Candidate } from './demand.ts'
import { measure } from './strategies.ts'
import type { Criterion, Question, Strategy } from './strategies.ts'

export interface Ranked {
  readonly candidate: Candidate
  /** What each criterion of the strategy measured, in its order; smaller is better. */
  readonly score: readonly number[]
}

/** All candidates, the best first. For explanations; a choice needs only a `Contest`. */
export function rank(strategy: Strategy, candidates: Iterable<Candidate>, question: Question): Ranked[] {
  return Array.from(candidates, (candidate) => rankOf(strategy, candidate, question)).sort(compareRanked)
}

export function rankOf(strategy: Strategy, candidate: Candidate, question: Question): Ranked {
  return { candidate, score: strategy.criteria.map((criterion) => measure(criterion, candidate, question)) }
}

/** Negative when `a` goes before `b`. Zero only for one and the same worker. */
export function compareRanked(a: Ranked, b: Ranked): number {
  for (const [index, measured] of a.score.entries()) {
    const other = at(b.score, index)
    if (measured !== other) return measured < other ? -1 : 1
  }
  const [idA, idB] = [a.candidate.worker.id, b.candidate.worker.id]
  return idA < idB ? -1 : idA > idB ? 1 : 0
}

/** The first criterion in which the two differ; `undefined` when only their ids do. */
export function decisive(strategy: Strategy, a: Ranked, b: Ranked): Criterion | undefined {
  return strategy.criteria.find((_criterion, index) => a.score[index] !== b.score[index])
}

export function choose(strategy: Strategy, candidates: Iterable<Candidate>, question: Question): Candidate | undefined {
  const contest = new Contest()
  contest.begin(strategy, question)
  for (const candidate of candidates) {
    if (contest.wouldLead(candidate)) contest.lead(candidate)
  }
  return contest.end()
}

const NO_QUESTION: Question = { type: '', model: undefined, last: undefined }

/**
 * Finds the first of the ranking in one pass and without new objects: `begin`; for each candidate
 * `wouldLead` and, if so, `lead`; `end`. Reusable.
 *
 * The two steps are apart so that a caller can check what is expensive in between: of n candidates
 * in random order only about ln n ever take the lead. A criterion is measured only where all
 * before it were equal.
 */
export class Contest {
  #criteria: readonly Criterion[] = []
  #question: Question = NO_QUESTION
  #leader: Candidate | undefined
  readonly #best: number[] = []

  begin(strategy: Strategy, question: Question): void {
    this.#criteria = strategy.criteria
    this.#question = question
    this.#leader = undefined
  }

  wouldLead(candidate: Candidate): boolean {
    const leader = this.#leader
    if (leader === undefined) return true
    const [criteria, question, best] = [this.#criteria, this.#question, this.#best]
    for (let index = 0; index < criteria.length; index += 1) {
      const measured = measure(at(criteria, index), candidate, question)
      if (measured !== best[index]) return measured < at(best, index)
    }
    return candidate.worker.id < leader.worker.id
  }

  lead(candidate: Candidate): void {
    this.#leader = candidate
    let index = 0
    for (const criterion of this.#criteria) {
      this.#best[index] = measure(criterion, candidate, this.#question)
      index += 1
    }
  }

  /** The winner. Forgets it, so that a worker which leaves is not kept in memory. */
  end(): Candidate | undefined {
    const leader = this.#leader
    this.#leader = undefined
    return leader
  }
}

/** For an index that is in range by construction: both lists were made from the same criteria. */
function at<T>(list: readonly T[], index: number): T {
  return list[index] as T
}
