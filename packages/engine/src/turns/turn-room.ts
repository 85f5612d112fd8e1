/** Until turns have told what they hold. */
const TYPICAL_BYTES = 8_192

/** Room in memory for the jobs of running turns: a thousand handlers that wait for something hold a thousand jobs. */
export class TurnRoom {
  readonly #bytesMax: number
  readonly #held = new Map<number, number>()
  #bytes = 0
  /** What a turn held lately, on average. */
  #typical = TYPICAL_BYTES

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** How many of so many more there is room for. One alone has room whatever it holds. */
  fitting(wanted: number): number {
    if (this.#held.size === 0) return Math.min(wanted, Math.max(1, Math.floor(this.#bytesMax / this.#typical)))
    return Math.min(wanted, Math.max(0, Math.floor((this.#bytesMax - this.#bytes) / this.#typical)))
  }

  take(turn: number, bytes: number): void {
    this.leave(turn)
    this.#held.set(turn, bytes)
    this.#bytes += bytes
    this.#typical += (bytes - this.#typical) / 8
  }

  leave(turn: number): void {
    this.#bytes -= this.#held.get(turn) ?? 0
    this.#held.delete(turn)
  }
}
