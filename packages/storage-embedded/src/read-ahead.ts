/** Every so many records that memory does not have, the one after it is read as well: it may be asked for next. */
const PROBE_EVERY = 8
const WINDOW_MAX = 128
/** From here on it is plain that records are asked for in their order, and the next ones are read before they are. */
const WINDOW_SURE = 16
/** Read beforehand at once: worth a look of its own, and not longer than the disk takes to write. */
const TOGETHER_MIN = 8
const TOGETHER_MAX = 64

/**
 * How many records to read from the disk at a time. A long queue is worked off in the order in which its jobs came, which is
 * the order of their ids, and to read the next ones together costs half of reading each when it is asked for. Whoever reads
 * here and there gets one at a time: the number grows only while what was read ahead is asked for.
 */
export class ReadAhead {
  readonly #windowMax: number
  #window = 1
  #misses = 0
  /** Read ahead and not yet asked for. */
  readonly #unused = new Set<string>()
  #used = 0
  /** No greater one has been read. */
  #last: string | undefined

  constructor(cacheMax: number) {
    this.#windowMax = Math.min(WINDOW_MAX, Math.floor(cacheMax / 8))
  }

  /** Memory had the record that was asked for. */
  found(id: string): void {
    if (this.#unused.size > 0 && this.#unused.delete(id)) this.#used += 1
  }

  /** Memory did not have it: how many to read. */
  missed(): number {
    this.#misses += 1
    if (this.#window > 1) this.#window = this.#isWorthwhile() ? this.#window * 2 : this.#window / 2
    else if (this.#misses % PROBE_EVERY === 0) this.#window = 2
    this.#window = Math.max(1, Math.min(this.#window, this.#windowMax))
    this.#unused.clear()
    this.#used = 0
    return this.#window
  }

  /** What to read while there is nothing else to do: so many after this one. */
  next(): { readonly after: string; readonly count: number } | undefined {
    if (this.#last === undefined || this.#window < WINDOW_SURE) return undefined
    // Nothing of it was asked for since: enough, if there is some left.
    if (this.#used === 0 && this.#unused.size > this.#window / 2) return undefined
    const count = Math.min(this.#window - this.#unused.size, TOGETHER_MAX)
    if (count < TOGETHER_MIN) return undefined
    this.#used = 0
    return { after: this.#last, count }
  }

  /** A record was read that nobody has asked for. */
  brought(id: string): void {
    this.#unused.add(id)
  }

  /** Up to this id everything has been read. */
  reached(id: string | undefined): void {
    this.#last = id
  }

  #isWorthwhile(): boolean {
    return this.#used > 0 && this.#used >= this.#unused.size
  }
}
