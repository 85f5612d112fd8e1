import { lstat } from 'node:fs/promises'
import { nativePath } from '../paths.ts'

interface Looked {
  readonly size: number
  readonly mtimeMs: number
  /** When to look again. */
  readonly dueAt: number
}

interface Waiting {
  looked: Looked | undefined
  /** An event came after the last look began: what that look saw may be outdated. */
  isHeardSince: boolean
  /** It was told of as held back. */
  isTold: boolean
}

export type Verdict = 'file' | 'directory' | 'gone' | 'other'

/** More paths at a time than any burst of a person or a copy has; beyond it everything is compared once instead. */
const PATHS_MAX = 50_000

/**
 * Holds paths with events until their files are quiet: size and time of change are the same for a while. A file that is being
 * written has many events and is looked at once for each pause.
 */
export class QuietFiles {
  readonly #quietMs: number
  readonly #settled: (path: string, verdict: Verdict) => void
  readonly #overflow: () => void
  readonly #held: (path: string) => void
  readonly #paths = new Map<string, Waiting>()
  readonly #timer: NodeJS.Timeout
  #isLooking = false

  /** `held` hears of files that keep changing: they are not taken yet. */
  constructor(
    quietMs: number,
    settled: (path: string, verdict: Verdict) => void,
    overflow: () => void,
    held: (path: string) => void = () => undefined,
  ) {
    this.#quietMs = quietMs
    this.#settled = settled
    this.#overflow = overflow
    this.#held = held
    this.#timer = setInterval(
      () => {
        void this.look()
      },
      Math.max(10, quietMs / 6),
    )
    this.#timer.unref()
  }

  get size(): number {
    return this.#paths.size
  }

  heard(path: string): void {
    const waiting = this.#paths.get(path)
    if (waiting !== undefined) {
      waiting.isHeardSince = true
      return
    }
    if (this.#paths.size >= PATHS_MAX) {
      this.#paths.clear()
      this.#overflow()
      return
    }
    this.#paths.set(path, { looked: undefined, isHeardSince: false, isTold: false })
  }

  close(): void {
    clearInterval(this.#timer)
    this.#paths.clear()
  }

  async look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const now = Date.now()
      const due = [...this.#paths].filter(([, { looked }]) => looked === undefined || looked.dueAt <= now)
      for (let at = 0; at < due.length; at += 64) {
        await Promise.all(due.slice(at, at + 64).map(([path, waiting]) => this.#lookAt(path, waiting)))
      }
    } finally {
      this.#isLooking = false
    }
  }

  async #lookAt(path: string, waiting: Waiting): Promise<void> {
    waiting.isHeardSince = false
    // A link is nothing that is read: what it points to may be outside.
    const facts = await lstat(nativePath(path)).catch(() => undefined)
    if (this.#paths.get(path) !== waiting) return
    if (facts === undefined || !facts.isFile()) {
      // A file may have been made again between the look and this line; its event must not be lost.
      if (!waiting.isHeardSince) {
        this.#end(path, facts === undefined ? 'gone' : facts.isDirectory() ? 'directory' : 'other')
      }
      return
    }
    const { size, mtimeMs } = facts
    const before = waiting.looked
    const isSame = before !== undefined && before.size === size && before.mtimeMs === mtimeMs
    const age = Date.now() - mtimeMs
    // A clock of another machine may be ahead; then only the comparison counts.
    if (!waiting.isHeardSince && (isSame || age >= this.#quietMs)) this.#end(path, 'file')
    else {
      const dueAt = Date.now() + this.#quietMs - Math.max(0, Math.min(age, this.#quietMs))
      waiting.looked = { size, mtimeMs, dueAt }
      // The first look at a new file is nearly always too early; the second one says that it is being written.
      if (before !== undefined && !waiting.isTold) {
        waiting.isTold = true
        this.#held(path)
      }
    }
  }

  #end(path: string, verdict: Verdict): void {
    this.#paths.delete(path)
    this.#settled(path, verdict)
  }
}
