import { comesBefore } from './entry.ts'
import type { Entry } from './entry.ts'

const GARBAGE_MIN = 64

/**
 * The ready items of one lane, best first. An entry's place in the order never changes, so a slot
 * that was left behind when the entry was taken elsewhere can serve again when it comes back.
 */
export class Lane {
  readonly name: string
  /** How many ready items a claim of this lane could get. */
  ready = 0
  /** The lane after this one among those that wait for their turn. */
  next: Lane | undefined = undefined
  inTurn = false
  #slots: Entry[] = []

  constructor(name: string) {
    this.name = name
  }

  add(entry: Entry): void {
    this.ready++
    if (this.#hasSlot(entry)) return
    this.#mark(entry, true)
    this.#slots.push(entry)
    this.#siftUp(this.#slots.length - 1)
  }

  /** An entry that was ready here no longer is; its slot stays until it reaches the top or a sweep. */
  leave(): void {
    this.ready--
    const garbage = this.#slots.length - this.ready
    if (garbage > GARBAGE_MIN && garbage * 2 > this.#slots.length) this.#sweep()
  }

  first(): Entry | undefined {
    if (this.ready === 0) return undefined
    for (;;) {
      const top = this.#slots[0]
      if (top === undefined || this.#isLive(top)) return top
      this.#mark(top, false)
      this.#dropFirst()
    }
  }

  clear(): void {
    for (const entry of this.#slots) this.#mark(entry, false)
    this.#slots = []
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
    const kept: Entry[] = []
    for (const entry of this.#slots) {
      if (this.#isLive(entry)) kept.push(entry)
      else this.#mark(entry, false)
    }
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
export class LaneTurns {
  #head: Lane | undefined = undefined
  #tail: Lane | undefined = undefined

  push(lane: Lane): void {
    if (lane.inTurn) return
    lane.inTurn = true
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
    lane.inTurn = false
    return lane
  }
}
