/** Tokens of one epoch; 2^21 epochs fit into a safe integer. */
export const TOKENS_PER_EPOCH = 2 ** 32

/** Gives tokens that never repeat: the epoch grows, durably, at every opening and when its tokens are used up. */
export class TokenSource {
  #epoch: number
  #count = 0

  constructor(epoch: number, count = 0) {
    this.#epoch = epoch
    this.#count = count
  }

  get epoch(): number {
    return this.#epoch
  }

  next(): number {
    if (++this.#count >= TOKENS_PER_EPOCH) {
      this.#epoch++
      this.#count = 1
    }
    return this.#epoch * TOKENS_PER_EPOCH + this.#count
  }
}
