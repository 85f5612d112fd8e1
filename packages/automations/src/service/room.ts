import type { Clock, Kind, Storage } from '@impresario/core'
import { fairShare, ImpresarioError } from '@impresario/protocol'
import { OwnerSums } from './owner-sums.ts'

export interface RoomOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly kind: Kind
  /** What all records of one owner may have together; see `fairShare`. */
  readonly bytesMax: number
  /** What they are called, and how one makes room. */
  readonly words: { readonly many: string; readonly fix: string }
}

/** Bounds the records of one kind in bytes, for each owner. */
export class Room {
  readonly #options: RoomOptions
  readonly #counts: OwnerSums

  constructor(options: RoomOptions) {
    this.#options = options
    this.#counts = new OwnerSums(options)
  }

  /** Refuses a new record that is larger than the share of its owner, or counts it. */
  async take(owner: string, bytes: number): Promise<void> {
    const known = await this.#counts.of(owner)
    mustFit(bytes, known.sum, this.#options)
    known.sum += 1
  }
}

/** Refuses what is larger than the share of one more record. */
export function mustFit(
  bytes: number,
  count: number,
  { bytesMax, words }: Pick<RoomOptions, 'bytesMax' | 'words'>,
): void {
  const share = Math.floor(fairShare(bytesMax, count))
  if (bytes <= share) return
  const message = `You have ${count} ${words.many}. With so many, one more may have ${share} bytes, and this one has ${bytes}. ${words.fix}`
  throw new ImpresarioError('LIMIT_EXCEEDED', message)
}
