const SYLLABLES = 'ба ве ди жо за ки ла мо ну по ра со те у фи ха ца че ша эк ла ре no ta ri se mu le'.split(' ')
const ENDINGS = ['', 'а', 'у', 'ом', 'ы', 'ов', 'ам', 'ами', 'ах']
const VOCABULARY = 30_000

/** Words that are made up, as frequent as words of a language are: the second half as often as the first, the third a third. */
export class Prose {
  readonly #frequencies: Float64Array
  #state: number

  constructor(seed: number) {
    this.#state = seed
    this.#frequencies = new Float64Array(VOCABULARY)
    let sum = 0
    for (let rank = 0; rank < VOCABULARY; rank += 1) {
      sum += 1 / (rank + 1)
      this.#frequencies[rank] = sum
    }
  }

  document(words: number): string {
    return Array.from({ length: words }, () => {
      const ending = ENDINGS[Math.floor(this.#chance() * ENDINGS.length)] ?? ''
      return `${wordOf(this.#rank())}${ending}`
    }).join(' ')
  }

  /** What somebody may look for: one to three words, none of the fifty most frequent, any size of frequency as likely as another. */
  query(): string {
    return Array.from({ length: 1 + Math.floor(this.#chance() * 3) }, () => {
      return wordOf(Math.floor(50 * (VOCABULARY / 50) ** this.#chance()))
    }).join(' ')
  }

  /** The word that nearly every document has. */
  mostFrequent(): string {
    return wordOf(0)
  }

  /** By Zipf's law. */
  #rank(): number {
    const wanted = this.#chance() * (this.#frequencies[VOCABULARY - 1] ?? 1)
    let low = 0
    let high = VOCABULARY - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#frequencies[middle] ?? 0) < wanted) low = middle + 1
      else high = middle
    }
    return low
  }

  /** From 0 up to 1. */
  #chance(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0
    return this.#state / 4_294_967_296
  }
}

/** Four syllables tell all of them apart. */
function wordOf(rank: number): string {
  let rest = rank
  let word = ''
  for (let syllable = 0; syllable < 4; syllable += 1) {
    word += SYLLABLES[rest % SYLLABLES.length] ?? ''
    rest = Math.floor(rest / SYLLABLES.length)
  }
  return `${word}н`
}
