import type { Clock, Storage } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { bytesOfStatus } from './gate.ts'

/** What waits is asked for so often. Between two looks what begins to wait here is added. */
const LOOK_MS = 1_000
/** Owners that are remembered. Others are counted again. */
const OWNERS_MAX = 10_000

/**
 * Bounds what all waiting runs of one owner bring. Gates are counted by the size of what waits at them, rounded up to the next
 * half power of two, in the commits that write them: so all instances see the same sum, at most 1.42 times the true one. What
 * other instances let in within a second is not seen yet.
 */
export class WaitingRoom {
  readonly #options: { readonly storage: Storage; readonly clock: Clock; readonly bytesMax: number }
  readonly #owners = new Map<string, { bytes: number; lookedAt: number }>()

  constructor(options: { readonly storage: Storage; readonly clock: Clock; readonly bytesMax: number }) {
    this.#options = options
  }

  /** Counts what begins to wait, or says why it does not. */
  async take(owner: string, bytes: number): Promise<string | undefined> {
    const { bytesMax } = this.#options
    const known = await this.#look(owner)
    const counted = countedBytes(bytes)
    if (known.bytes + counted > bytesMax) {
      return `The runs of ${owner} that wait for their place bring some ${known.bytes} bytes of params and events; ${bytesMax} are allowed, and this one brings ${bytes}. Send less, or wait until some have run.`
    }
    known.bytes += counted
    return undefined
  }

  async #look(owner: string): Promise<{ bytes: number; lookedAt: number }> {
    const { storage, clock } = this.#options
    const now = clock.now()
    const known = this.#owners.get(owner)
    if (known !== undefined && now - known.lookedAt < LOOK_MS) return known
    const counts = await storage.counts('gate', { owner })
    const bytes = Object.entries(counts).reduce((sum, [status, count]) => sum + count * bytesOfStatus(status), 0)
    const fresh = { bytes, lookedAt: now }
    if (this.#owners.size >= OWNERS_MAX) this.#owners.clear()
    this.#owners.set(owner, fresh)
    return fresh
  }
}

/** Also an empty one takes its place in queues and indexes. */
export function countedBytes(bytes: number): number {
  return Math.max(bytes, LIMITS.recordBytesMin)
}
