import type { ParsedDocument } from '../parsing/parser.ts'
import { FIELD_WEIGHTS, lexeme } from './tsquery-match.ts'

/** PostgreSQL keeps no later positions, nor more of them for one lexeme, and no more than a megabyte in all. */
const POSITION_MAX = 16_382
const POSITIONS_MAX = 255
const BYTES_MAX = 900_000
/** What a lexeme takes beside its characters. */
const LEXEME_BYTES = 8
/** Phrases do not reach from one field into the next. */
const GAP = 8
/** Codes may be many. The text comes after them, and needs positions too. */
const PARTS_POSITION_MAX = 4_000

/**
 * The terms of a document as a literal of tsvector. Words beyond the first sixteen thousand have no position: they are found, but
 * not as part of a phrase. Terms that no longer fit into PostgreSQL's megabyte are left out.
 */
export function tsvectorOf({ name, title, body, parts }: ParsedDocument['terms'], owner: string): string {
  const vector = new Vector()
  vector.add([ownerLexeme(owner)], undefined, 0)
  vector.add(wordsOf(name), FIELD_WEIGHTS.name, POSITION_MAX)
  vector.add(wordsOf(title), FIELD_WEIGHTS.title, POSITION_MAX)
  vector.add(wordsOf(parts), FIELD_WEIGHTS.parts, PARTS_POSITION_MAX)
  vector.add(wordsOf(body), FIELD_WEIGHTS.body, POSITION_MAX)
  return vector.text()
}

/** Every document has that of its owner, so that the index itself leaves out what belongs to others. No word begins like this. */
export function ownerLexeme(owner: string): string {
  return `=${owner}`
}

function wordsOf(terms: string): readonly string[] {
  return terms === '' ? [] : terms.split(' ')
}

class Vector {
  readonly #positions = new Map<string, string[]>()
  #next = 1
  #bytes = 0

  add(words: readonly string[], weight: string | undefined, positionMax: number): void {
    for (const word of words) {
      const positions = this.#positionsOf(word)
      const position = this.#next
      this.#next += 1
      if (positions === undefined || weight === undefined || position > positionMax) continue
      if (positions.length >= POSITIONS_MAX) continue
      positions.push(`${position}${weight}`)
      this.#bytes += 2
    }
    this.#next += GAP
  }

  text(): string {
    const entries = Array.from(this.#positions, ([word, positions]) =>
      positions.length === 0 ? lexeme(word) : `${lexeme(word)}:${positions.join(',')}`,
    )
    return entries.join(' ')
  }

  /** `undefined` if there is no room for it. */
  #positionsOf(word: string): string[] | undefined {
    const known = this.#positions.get(word)
    if (known !== undefined) return known
    const bytes = Buffer.byteLength(word) + LEXEME_BYTES
    if (this.#bytes + bytes > BYTES_MAX) return undefined
    this.#bytes += bytes
    const positions: string[] = []
    this.#positions.set(word, positions)
    return positions
  }
}
