import { WOKEN } from '@impresario/core'
import type { Clock } from '@impresario/core'

/** As few as these wait for one another; of more, this many run at a time. */
const FEW = 8
/** A run that has lasted so long has let others have the process meanwhile, and no longer keeps them waiting. */
const PATIENCE_MS = 5_000

interface Waiting {
  readonly isAlone: boolean
  /** With how to leave; nothing when the gate was closed first. */
  readonly admit: (leave: (() => void) | undefined) => void
}

/**
 * Where turns wait whose earlier run ended with its process. One of them may be why it ended, so that they run one at a
 * time: should the process end again, the count of runs that never ended grows for that one and not for all of them.
 *
 * When many wait, some run together at first. Those that were begun before without an end always run alone.
 */
export class SuspectGate {
  readonly #clock: Clock
  readonly #waiting: Waiting[] = []
  #inside = 0
  #isAloneInside = false
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Gives how to leave, once it may run; nothing when everything stops first. */
  enter(isAlone: boolean): Promise<(() => void) | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      this.#waiting.push({ isAlone, admit: resolve })
      this.#admitNext()
    })
  }

  open(): void {
    this.#isClosed = false
  }

  /** No more turns are admitted. */
  close(): void {
    this.#isClosed = true
    for (const { admit } of this.#waiting.splice(0)) admit(undefined)
  }

  #admitNext(): void {
    for (;;) {
      const [next] = this.#waiting
      if (next === undefined || this.#isAloneInside) return
      const isAlone = next.isAlone || this.#waiting.length <= FEW
      if (this.#inside >= (isAlone ? 1 : FEW)) return
      this.#waiting.shift()
      this.#inside += 1
      this.#isAloneInside = isAlone
      next.admit(this.#leaveOf(isAlone))
    }
  }

  #leaveOf(isAlone: boolean): () => void {
    const patience = new AbortController()
    let hasLeft = false
    const leave = (): void => {
      if (hasLeft) return
      hasLeft = true
      patience.abort(WOKEN)
      this.#inside -= 1
      if (isAlone) this.#isAloneInside = false
      this.#admitNext()
    }
    void this.#clock.sleep(PATIENCE_MS, patience.signal).then(leave)
    return leave
  }
}
