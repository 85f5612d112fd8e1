/** A scheduled event. It is cancelled by removing its action: its slot in the heap is freed when its time comes. */
export interface Due {
  readonly at: number
  readonly seq: number
  run: () => void
  isCancelled: boolean
}

/** Scheduled events in time order; at equal times in insertion order. */
export class DueHeap {
  readonly #heap: Due[] = []
  #seq = 0

  push(at: number, run: () => void): Due {
    const heap = this.#heap
    const due: Due = { at, seq: (this.#seq += 1), run, isCancelled: false }
    let index = heap.push(due) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent]
      if (above === undefined || comesBefore(above, due)) break
      heap[index] = above
      index = parent
    }
    heap[index] = due
    return due
  }

  pop(): Due | undefined {
    for (;;) {
      const due = this.#take()
      if (due === undefined || !due.isCancelled) return due
    }
  }

  #take(): Due | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let index = 0
    for (;;) {
      const left = 2 * index + 1
      const right = left + 1
      const a = heap[left]
      const b = heap[right]
      if (a === undefined) break
      const child = b !== undefined && comesBefore(b, a) ? b : a
      if (comesBefore(last, child)) break
      heap[index] = child
      index = child === a ? left : right
    }
    heap[index] = last
    return first
  }
}

function comesBefore(a: Due, b: Due): boolean {
  return a.at < b.at || (a.at === b.at && a.seq < b.seq)
}
