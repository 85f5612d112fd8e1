/** A time at which an entry has to be checked. Without an entry, the alarm was cancelled. */
export interface Alarm<T> {
  at: number
  entry: T | undefined
}

/** Below this many cancelled alarms a sweep is not worth its pass over the heap. */
const GARBAGE_MIN = 64

/**
 * A binary heap by time. Cancelling only marks, because most alarms (the end of a lease) are
 * cancelled long before they ring; once more than half is cancelled, one pass drops them all.
 */
export class AlarmHeap<T> {
  #alarms: Alarm<T>[] = []
  #cancelled = 0

  get size(): number {
    return this.#alarms.length
  }

  push(at: number, entry: T): Alarm<T> {
    const alarm: Alarm<T> = { at, entry }
    this.#alarms.push(alarm)
    this.#siftUp(this.#alarms.length - 1)
    return alarm
  }

  cancel(alarm: Alarm<T>): void {
    alarm.entry = undefined
    this.#cancelled++
    if (this.#cancelled > GARBAGE_MIN && this.#cancelled * 2 > this.#alarms.length) this.#sweep()
  }

  /** The earliest alarm that was not cancelled. */
  first(): Alarm<T> | undefined {
    for (;;) {
      const top = this.#alarms[0]
      if (top === undefined || top.entry !== undefined) return top
      this.#cancelled--
      this.dropFirst()
    }
  }

  dropFirst(): void {
    const last = this.#alarms.pop()
    if (last === undefined || this.#alarms.length === 0) return
    this.#alarms[0] = last
    this.#siftDown(0)
  }

  /** Rings the first alarm later than it was set for. */
  delayFirst(at: number): void {
    const top = this.#alarms[0]
    if (top === undefined) return
    top.at = at
    this.#siftDown(0)
  }

  #sweep(): void {
    this.#alarms = this.#alarms.filter((alarm) => alarm.entry !== undefined)
    this.#cancelled = 0
    for (let index = (this.#alarms.length >> 1) - 1; index >= 0; index--) this.#siftDown(index)
  }

  #siftUp(start: number): void {
    const alarms = this.#alarms
    const alarm = alarms[start]
    if (alarm === undefined) return
    let index = start
    while (index > 0) {
      const up = (index - 1) >> 1
      const parent = alarms[up]
      if (parent === undefined || parent.at <= alarm.at) break
      alarms[index] = parent
      index = up
    }
    alarms[index] = alarm
  }

  #siftDown(start: number): void {
    const alarms = this.#alarms
    const alarm = alarms[start]
    if (alarm === undefined) return
    let index = start
    for (;;) {
      const left = 2 * index + 1
      let child = alarms[left]
      if (child === undefined) break
      let at = left
      const right = alarms[left + 1]
      if (right !== undefined && right.at < child.at) {
        child = right
        at = left + 1
      }
      if (child.at >= alarm.at) break
      alarms[index] = child
      index = at
    }
    alarms[index] = alarm
  }
}
