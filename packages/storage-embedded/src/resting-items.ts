import type { RestingPage } from './journal.ts'

/** Rows of a page are numbered within this many bits; the page is in the others. */
const ROW_BITS = 15
/** A page holds no more rows than this. */
export const RESTING_PAGE_ROWS = 2 ** ROW_BITS
const ROW_MASK = RESTING_PAGE_ROWS - 1

interface Page {
  /** One after the other, in UTF-8. */
  readonly ids: Buffer
  readonly idEnds: Uint32Array
  readonly seqs: Float64Array
  readonly ranks: Float64Array
  /** What is in memory as an entry, or was. */
  readonly taken: Uint8Array
  readonly count: number
}

/** The resting items of one lane, in the order in which they are claimed. */
export class RestingLane {
  readonly #order: Uint32Array
  #at = 0
  left: number

  constructor(order: Uint32Array) {
    this.#order = order
    this.left = order.length
  }

  /** The first that still rests. */
  first(items: RestingItems): number | undefined {
    for (;;) {
      const position = this.#order[this.#at]
      if (position === undefined || !items.isTaken(position)) return position
      this.#at += 1
    }
  }

  /** How many from the first one on rest side by side, in the journal's order as in the lane's. */
  runFrom(first: number, items: RestingItems, max: number): number {
    let count = 1
    while (count < max && this.#order[this.#at + count] === first + count && !items.isTaken(first + count)) count += 1
    return count
  }
}

/**
 * Items of one queue that a start found in the journal and left there: nobody holds them, and nothing is to be done about them
 * until they are claimed, looked at, or due. A million of them take 70 MB, where entries take 600. Each becomes an entry when
 * it is needed, and never rests again. In between its row does not change, because only entries are written.
 *
 * They are kept in the order of their ids, so that one is found by its id without a table.
 */
export class RestingItems {
  readonly #pages: Page[] = []
  readonly #lanes = new Map<string, number[]>()
  readonly #alarms: { readonly position: number; readonly at: number }[] = []
  #alarmsDone = 0
  /** Positions whose time has not come: they are in no lane yet. */
  readonly #asleep = new Set<number>()
  #left = 0
  #seqMax = 0

  get left(): number {
    return this.#left
  }

  get seqMax(): number {
    return this.#seqMax
  }

  /** Those of these numbers that items have. */
  seqsAmong(wanted: ReadonlySet<number>): readonly number[] {
    return [...wanted].filter((seq) => this.#pages.some(({ seqs }) => seqs.includes(seq)))
  }

  add(page: RestingPage): void {
    const { lanes, seqs, ranks, alarms, asleep } = page
    const count = seqs.length
    const base = this.#pages.length << ROW_BITS
    const idEnds = new Uint32Array(count)
    let end = 0
    for (let row = 0; row < count; row += 1) {
      end += page.idBytes[row] ?? 0
      this.#seqMax = Math.max(this.#seqMax, seqs[row] ?? 0)
      idEnds[row] = end
      const position = base | row
      const at = alarms?.[row] ?? Infinity
      if (at !== Infinity) this.#alarms.push({ position, at })
      if (asleep?.[row] === true) this.#asleep.add(position)
      else this.#laneOf(typeof lanes === 'string' ? lanes : (lanes[row] ?? '')).push(position)
    }
    this.#pages.push({
      ids: Buffer.from(page.ids.buffer, page.ids.byteOffset, page.ids.byteLength),
      idEnds,
      seqs: Float64Array.from(seqs),
      ranks: Float64Array.from(ranks),
      taken: new Uint8Array(count),
      count,
    })
    this.#left += count
    this.#mustBeInOrder(this.#pages.length - 1)
  }

  /** SQLite promises no order inside of `group_concat`, and nothing would be found without it. */
  #mustBeInOrder(index: number): void {
    const page = this.#pages[index]
    const before = this.#pages[index - 1]
    if (page === undefined) return
    let last = before === undefined ? undefined : this.#idBytes(before, before.count - 1)
    for (let row = 0; row < page.count; row += 1) {
      const id = this.#idBytes(page, row)
      const isInOrder = last === undefined || last.compare(id) < 0
      if (!isInOrder) throw new Error('The items were not read in the order of their ids.')
      last = id
    }
  }

  /** All pages are here. Gives the lanes. */
  *settle(): Generator<readonly [name: string, lane: RestingLane]> {
    this.#alarms.sort((a, b) => a.at - b.at)
    for (const [name, positions] of this.#lanes) {
      const order = Uint32Array.from(positions)
      if (!this.#isInOrder(order)) order.sort((a, b) => this.#compare(a, b))
      yield [name, new RestingLane(order)]
    }
    this.#lanes.clear()
  }

  /** Where an item with this id rests. */
  find(id: string): number | undefined {
    if (this.#left === 0) return undefined
    const bytes = Buffer.from(id)
    const last = this.#pages.at(-1)
    // New items have new ids, which sort after all others: nothing is searched for them.
    if (last === undefined || bytes.compare(this.#idBytes(last, last.count - 1)) > 0) return undefined
    const index = firstWhere(this.#pages.length, (at) => {
      const page = this.#pages[at]
      return page !== undefined && this.#idBytes(page, page.count - 1).compare(bytes) >= 0
    })
    const page = this.#pages[index]
    if (page === undefined) return undefined
    const row = firstWhere(page.count, (at) => this.#idBytes(page, at).compare(bytes) >= 0)
    if (row === page.count || page.taken[row] === 1 || !this.#idBytes(page, row).equals(bytes)) return undefined
    return (index << ROW_BITS) | row
  }

  idAt(position: number): string {
    return this.#idBytes(this.#pageOf(position), position & ROW_MASK).toString()
  }

  /** Whether it is claimed before an entry with this rank and number. */
  comesBefore(position: number, { rank, seq }: { readonly rank: number; readonly seq: number }): boolean {
    const own = this.#rank(position)
    return own === rank ? this.#seq(position) < seq : own < rank
  }

  isTaken(position: number): boolean {
    return this.#pageOf(position).taken[position & ROW_MASK] === 1
  }

  /** It rests no longer. True when it was in its lane. */
  take(position: number): boolean {
    this.#pageOf(position).taken[position & ROW_MASK] = 1
    this.#left -= 1
    return !this.#asleep.delete(position)
  }

  /** The next one that something is to be done about, and when. */
  nextAlarm(): { readonly position: number; readonly at: number } | undefined {
    for (;;) {
      const alarm = this.#alarms[this.#alarmsDone]
      if (alarm === undefined || !this.isTaken(alarm.position)) return alarm
      this.#alarmsDone += 1
    }
  }

  #laneOf(name: string): number[] {
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      lane = []
      this.#lanes.set(name, lane)
    }
    return lane
  }

  #isInOrder(order: Uint32Array): boolean {
    for (let at = 1; at < order.length; at += 1) if (this.#compare(order[at - 1] ?? 0, order[at] ?? 0) > 0) return false
    return true
  }

  #compare(a: number, b: number): number {
    const ranks = this.#rank(a) - this.#rank(b)
    return ranks === 0 ? this.#seq(a) - this.#seq(b) : ranks
  }

  #rank(position: number): number {
    return this.#pageOf(position).ranks[position & ROW_MASK] ?? 0
  }

  #seq(position: number): number {
    return this.#pageOf(position).seqs[position & ROW_MASK] ?? 0
  }

  #idBytes({ ids, idEnds }: Page, row: number): Buffer {
    return ids.subarray(row === 0 ? 0 : idEnds[row - 1], idEnds[row])
  }

  #pageOf(position: number): Page {
    const page = this.#pages[position >>> ROW_BITS]
    if (page === undefined) throw new Error('An item rests nowhere.')
    return page
  }
}

/** The first of so many indexes for which this holds, if it holds for all after one for which it does. */
function firstWhere(count: number, holds: (index: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}
