/** After this many cache misses, the following record is read as well, because it may be requested next. */
const PROBE_EVERY = 8
const WINDOW_MAX = 128
/** From this count on, the access pattern is sequential, and the next records are read before they are requested. */
const WINDOW_SURE = 16
/**
 * Records read ahead at once: enough to be worth a separate query, and not slower than the disk write that runs
 * meanwhile.
 */
const TOGETHER_MIN = 8
const TOGETHER_MAX = 64

/**
 * Decides how many records to read from the disk at a time. A long queue is processed in the order in which its jobs
 * were created, which is the order of their ids. Reading the next records together costs half as much as reading each
 * one on request. Random reads get one record at a time: the number grows only while the records that were read ahead
 * are requested.
 */
export class ReadAhead {
  readonly #windowMax: number
  #window = 1
  #misses = 0
  /** Read ahead and not yet requested. */
  readonly #unused = new Set<string>()
  #used = 0
  /** The greatest id that has been read. */
  #last: string | undefined

  constructor(cacheMax: number) {
    this.#windowMax = Math.min(WINDOW_MAX, Math.floor(cacheMax / 8))
  }

  /** Cache hit: memory had the requested record. */
  found(id: string): void {
    if (this.#unused.size > 0 && this.#unused.delete(id)) this.#used += 1
  }

  /** Cache miss: returns how many records to read. */
  missed(): number {
    this.#misses += 1
    if (this.#window > 1) this.#window = this.#isWorthwhile() ? this.#window * 2 : this.#window / 2
    else if (this.#misses % PROBE_EVERY === 0) this.#window = 2
    this.#window = Math.max(1, Math.min(this.#window, this.#windowMax))
    this.#unused.clear()
    this.#used = 0
    return this.#window
  }

  /** What to read when idle: this many records after this id. */
  next(): { readonly after: string; readonly count: number } | undefined {
    if (this.#last === undefined || this.#window < WINDOW_SURE) return undefined
    // None of the records read ahead has been requested since. If some are left, that is enough.
    if (this.#used === 0 && this.#unused.size > this.#window / 2) return undefined
    const count = Math.min(this.#window - this.#unused.size, TOGETHER_MAX)
    if (count < TOGETHER_MIN) return undefined
    this.#used = 0
    return { after: this.#last, count }
  }

  /** A record was read ahead of any request. */
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
