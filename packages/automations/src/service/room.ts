import type { Clock, Kind, Storage } from '@impresario/core'
import { fairShare, ImpresarioError } from '@impresario/protocol'

/** A count is asked for so often. Between two looks every record that is written here counts as one more. */
const LOOK_MS = 1_000
/** Owners that are remembered. Others are counted again. */
const OWNERS_MAX = 10_000

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
  readonly #owners = new Map<string, { count: number; lookedAt: number }>()

  constructor(options: RoomOptions) {
    this.#options = options
  }

  /** Refuses a new record that is larger than the share of its owner, or counts it. */
  async take(owner: string, bytes: number): Promise<void> {
    const known = await this.#look(owner)
    mustFit(bytes, known.count, this.#options)
    known.count += 1
  }

  async #look(owner: string): Promise<{ count: number; lookedAt: number }> {
    const { storage, clock, kind } = this.#options
    const now = clock.now()
    const known = this.#owners.get(owner)
    if (known !== undefined && now - known.lookedAt < LOOK_MS) return known
    const counts = await storage.counts(kind, { owner })
    const fresh = { count: Object.values(counts).reduce((sum, count) => sum + count, 0), lookedAt: now }
    if (this.#owners.size >= OWNERS_MAX) this.#owners.clear()
    this.#owners.set(owner, fresh)
    return fresh
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
