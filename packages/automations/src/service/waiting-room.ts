import type { Clock, Storage } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { bytesOfStatus } from './gate.ts'
import { OwnerSums } from './owner-sums.ts'

interface WaitingRoomOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly bytesMax: number
}

/**
 * Bounds what all waiting runs of one owner bring. Gates are counted by the size of what waits at them, rounded up to the next
 * half power of two, in the commits that write them: so all instances see the same sum, at most 1.42 times the true one. What
 * other instances let in within a second is not seen yet.
 */
export class WaitingRoom {
  readonly #bytesMax: number
  readonly #bytes: OwnerSums

  constructor({ storage, clock, bytesMax }: WaitingRoomOptions) {
    this.#bytesMax = bytesMax
    this.#bytes = new OwnerSums({ storage, clock, kind: 'gate', amountOf: bytesOfStatus })
  }

  /** Counts what begins to wait, or says why it does not. */
  async take(owner: string, bytes: number): Promise<string | undefined> {
    const bytesMax = this.#bytesMax
    const known = await this.#bytes.of(owner)
    const counted = countedBytes(bytes)
    if (known.sum + counted > bytesMax) {
      return `The runs of ${owner} that wait for their place bring some ${known.sum} bytes of params and events; ${bytesMax} are allowed, and this one brings ${bytes}. Send less, or wait until some have run.`
    }
    known.sum += counted
    return undefined
  }
}

/** Also an empty one takes its place in queues and indexes. */
export function countedBytes(bytes: number): number {
  return Math.max(bytes, LIMITS.recordBytesMin)
}
