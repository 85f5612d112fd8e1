import type { Candidate, Demand } from './demand.ts'
import { fits } from './match.ts'
import { compareRanked } from './rank.ts'
import type { Ranked } from './rank.ts'
import { measure } from './strategies.ts'
import type { Question, Strategy } from './strategies.ts'

/** At most so many stand in one row: a newcomer then moves 128 others on average, whatever the number of workers. */
const ROW_MAX = 256

/** Whether a strategy's order changes only with the workers themselves, so that it can be kept from one choice to the next. */
export function isKeepable({ criteria }: Strategy): boolean {
  return isRing(criteria) || criteria.every(({ isSteady }) => isSteady === true)
}

/** Rotation: the order is that of the ids, and the beginning moves. */
function isRing(criteria: Strategy['criteria']): boolean {
  return criteria.length === 1 && criteria[0]?.name === 'turn'
}

/**
 * The open workers that fit one kind of task, kept in the order in which a strategy prefers them. Asking for the best costs the
 * same for ten workers and for fifty thousand; a change of one worker costs a search and a short move.
 *
 * Rows of at most `ROW_MAX`, each sorted, and all of the one before those of the next.
 */
export class Ordering {
  readonly #strategy: Strategy
  readonly #question: Question
  readonly #demand: Demand
  readonly #isRing: boolean
  readonly #rows: Ranked[][] = []
  readonly #ranked = new Map<string, Ranked>()

  constructor(strategy: Strategy, question: Question, demand: Demand) {
    this.#strategy = strategy
    this.#question = question
    this.#demand = demand
    this.#isRing = isRing(strategy.criteria)
  }

  /** Takes in a worker that is open, or its change. */
  put(candidate: Candidate): void {
    const { id } = candidate.worker
    const before = this.#ranked.get(id)
    const score = this.#isRing ? [] : this.#strategy.criteria.map((one) => measure(one, candidate, this.#question))
    const isFit = fits(this.#demand, candidate.worker)
    if (before !== undefined) {
      if (isFit && score.every((measured, index) => measured === before.score[index])) return
      this.#take(before)
    }
    if (!isFit) return
    // The candidate itself changes; it is found again by the score that it had when it came.
    const ranked: Ranked = { candidate, score }
    this.#ranked.set(id, ranked)
    this.#insert(ranked)
  }

  remove(id: string): void {
    const before = this.#ranked.get(id)
    if (before !== undefined) this.#take(before)
  }

  /** The best that is not excluded; in rotation, the next one after `last`. */
  best(exclude: readonly string[], last: string | undefined): Candidate | undefined {
    if (!this.#isRing || last === undefined) return this.#from(0, 0, exclude)
    const row = this.#rows.findIndex((one) => idOf(lastOf(one)) > last)
    if (row === -1) return this.#from(0, 0, exclude)
    const at = rowAt(this.#rows, row).findIndex((ranked) => idOf(ranked) > last)
    return this.#from(row, at, exclude) ?? this.#from(0, 0, exclude)
  }

  #from(firstRow: number, firstAt: number, exclude: readonly string[]): Candidate | undefined {
    for (let row = firstRow; row < this.#rows.length; row += 1) {
      const found = rowAt(this.#rows, row)
        .slice(row === firstRow ? firstAt : 0)
        .find(({ candidate }) => !exclude.includes(candidate.worker.id))
      if (found !== undefined) return found.candidate
    }
    return undefined
  }

  #insert(ranked: Ranked): void {
    const rows = this.#rows
    if (rows.length === 0) {
      rows.push([ranked])
      return
    }
    const index = this.#rowFor(ranked)
    const row = rowAt(rows, index)
    row.splice(placeIn(row, ranked), 0, ranked)
    if (row.length > ROW_MAX) rows.splice(index + 1, 0, row.splice(ROW_MAX / 2))
  }

  #take(ranked: Ranked): void {
    this.#ranked.delete(ranked.candidate.worker.id)
    const index = this.#rowFor(ranked)
    const row = rowAt(this.#rows, index)
    row.splice(placeIn(row, ranked), 1)
    if (row.length === 0) this.#rows.splice(index, 1)
  }

  /** The first row whose last one does not come before it, or else the last row. */
  #rowFor(ranked: Ranked): number {
    let low = 0
    let high = this.#rows.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareRanked(lastOf(rowAt(this.#rows, middle)), ranked) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Where it stands in the row, or would stand. */
function placeIn(row: readonly Ranked[], ranked: Ranked): number {
  let low = 0
  let high = row.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareRanked(row[middle] as Ranked, ranked) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** For an index that is in range by construction. */
function rowAt(rows: readonly Ranked[][], index: number): Ranked[] {
  return rows[index] as Ranked[]
}

/** Of a row, which is never empty. */
function lastOf(row: readonly Ranked[]): Ranked {
  return row.at(-1) as Ranked
}

function idOf(ranked: Ranked): string {
  return ranked.candidate.worker.id
}
