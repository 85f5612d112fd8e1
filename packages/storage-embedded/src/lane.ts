import { comesBefore } from './entry.ts'
import type { Entry } from './entry.ts'
import type { RestingLane } from './resting-items.ts'

const GARBAGE_MIN = 64
/** Number of empty slots at the start of the array before it is worth moving the rest. */
const EMPTY_MIN = 1024

/**
 * The ready items of one lane, best first. An entry's position in the order never changes, so a slot that was left
 * behind when the entry was taken through another lane can be reused when the entry comes back.
 *
 * Nearly all items arrive in the order in which they are taken. They are kept in an array, where the next one is found
 * without comparing it with the others. Items that arrive out of order, before an item that is already there, go into a
 * separate heap.
 */
export class Lane {
  readonly name: string
  /** The number of ready items that a claim of this lane could get, without those that rest. */
  ready = 0
  /** Ready items that are still only in the journal. */
  resting: RestingLane | undefined = undefined
  /** The lane after this one among those in rotation. */
  next: Lane | undefined = undefined
  inRotation = false
  #row: (Entry | undefined)[] = []
  #rowStart = 0
  #slots: Entry[] = []

  constructor(name: string) {
    this.name = name
  }

  /** All ready items that a claim of this lane could get. */
  get readyCount(): number {
    return this.resting === undefined ? this.ready : this.ready + this.resting.left
  }

  add(entry: Entry): void {
    this.ready++
    if (this.#hasSlot(entry)) return
    this.#mark(entry, true)
    const last = this.#row.at(-1)
    if (last === undefined || comesBefore(last, entry)) {
      this.#row.push(entry)
      return
    }
    this.#slots.push(entry)
    this.#siftUp(this.#slots.length - 1)
  }

  /** An entry that was ready here no longer is. Its slot stays until it reaches the top or is swept. */
  leave(): void {
    this.ready--
    const length = this.#row.length - this.#rowStart + this.#slots.length
    const garbage = length - this.ready
    if (garbage > GARBAGE_MIN && garbage * 2 > length) this.#sweep()
  }

  first(): Entry | undefined {
    if (this.ready === 0) return undefined
    const inRow = this.#firstInRow()
    const inHeap = this.#firstInHeap()
    if (inRow === undefined || inHeap === undefined) return inRow ?? inHeap
    return comesBefore(inHeap, inRow) ? inHeap : inRow
  }

  clear(): void {
    for (const entry of this.#all()) this.#mark(entry, false)
    this.#row = []
    this.#rowStart = 0
    this.#slots = []
  }

  *#all(): Iterable<Entry> {
    for (let index = this.#rowStart; index < this.#row.length; index++) {
      const entry = this.#row[index]
      if (entry !== undefined) yield entry
    }
    yield* this.#slots
  }

  #firstInRow(): Entry | undefined {
    for (;;) {
      const first = this.#row[this.#rowStart]
      if (first === undefined || this.#isLive(first)) return first
      this.#mark(first, false)
      this.#row[this.#rowStart] = undefined
      this.#rowStart++
      if (this.#rowStart > EMPTY_MIN && this.#rowStart * 2 > this.#row.length) this.#shorten()
    }
  }

  #shorten(): void {
    this.#row = this.#row.slice(this.#rowStart)
    this.#rowStart = 0
  }

  #firstInHeap(): Entry | undefined {
    for (;;) {
      const top = this.#slots[0]
      if (top === undefined || this.#isLive(top)) return top
      this.#mark(top, false)
      this.#dropFirst()
    }
  }

  #isLive(entry: Entry): boolean {
    return entry.state === 'ready' && !entry.gone && (entry.fallbackOn || entry.lane === this.name)
  }

  #hasSlot(entry: Entry): boolean {
    return entry.lane === this.name ? entry.inLane : entry.inFallback
  }

  #mark(entry: Entry, has: boolean): void {
    if (entry.lane === this.name) entry.inLane = has
    else entry.inFallback = has
  }

  #sweep(): void {
    const isKept = (entry: Entry | undefined): entry is Entry => {
      if (entry === undefined) return false
      if (this.#isLive(entry)) return true
      this.#mark(entry, false)
      return false
    }
    this.#row = this.#row.filter(isKept)
    this.#rowStart = 0
    const kept = this.#slots.filter(isKept)
    this.#slots = kept
    for (let index = (kept.length >> 1) - 1; index >= 0; index--) this.#siftDown(index)
  }

  #dropFirst(): void {
    const last = this.#slots.pop()
    if (last === undefined || this.#slots.length === 0) return
    this.#slots[0] = last
    this.#siftDown(0)
  }

  #siftUp(start: number): void {
    const slots = this.#slots
    const entry = slots[start]
    if (entry === undefined) return
    let index = start
    while (index > 0) {
      const up = (index - 1) >> 1
      const parent = slots[up]
      if (parent === undefined || !comesBefore(entry, parent)) break
      slots[index] = parent
      index = up
    }
    slots[index] = entry
  }

  #siftDown(start: number): void {
    const slots = this.#slots
    const entry = slots[start]
    if (entry === undefined) return
    let index = start
    for (;;) {
      const left = 2 * index + 1
      let child = slots[left]
      if (child === undefined) break
      let at = left
      const right = slots[left + 1]
      if (right !== undefined && comesBefore(right, child)) {
        child = right
        at = left + 1
      }
      if (!comesBefore(child, entry)) break
      slots[index] = child
      index = at
    }
    slots[index] = entry
  }
}

/** Lanes with ready items, each served once before any is served twice. */
export class LaneRotation {
  #head: Lane | undefined = undefined
  #tail: Lane | undefined = undefined

  push(lane: Lane): void {
    if (lane.inRotation) return
    lane.inRotation = true
    lane.next = undefined
    if (this.#tail === undefined) this.#head = lane
    else this.#tail.next = lane
    this.#tail = lane
  }

  shift(): Lane | undefined {
    const lane = this.#head
    if (lane === undefined) return undefined
    this.#head = lane.next
    if (this.#head === undefined) this.#tail = undefined
    lane.next = undefined
    lane.inRotation = false
    return lane
  }
}
