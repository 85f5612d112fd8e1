import type { Clock } from '@impresario/core'
import type { WebSocket } from 'ws'
import type { Proof } from '../auth/worker-auth.ts'

const SECOND_MS = 1_000
/** Frames over the limit in one second, in limits: beyond it the other end does not listen. */
const FLOOD = 20

/** One open socket, and what is known of it. */
export class Line {
  readonly socket: WebSocket
  readonly proof: Proof
  workerId: string | undefined
  /** Has been heard of since the last ping. */
  isAlive = true
  mistakes = 0
  /** What is being done for it; each frame waits for the one before. */
  working: Promise<void> = Promise.resolve()
  readonly #clock: Clock
  readonly #framesPerSecond: number
  #bytes = 0
  #secondAt = Number.NEGATIVE_INFINITY
  #frames = 0

  constructor(socket: WebSocket, proof: Proof, clock: Clock, framesPerSecond: number) {
    this.socket = socket
    this.proof = proof
    this.#clock = clock
    this.#framesPerSecond = framesPerSecond
  }

  heard(): void {
    this.isAlive = true
  }

  /** What has come since this was asked last. `bytes`: what has come at all. */
  bytesSince(bytes: number): number {
    const more = bytes - this.#bytes
    this.#bytes = bytes
    return more
  }

  /** Counts a frame. `warn` for the first of a second that is too much, `drop` for those after it. */
  pace(): 'good' | 'warn' | 'drop' | 'flood' {
    const now = this.#clock.now()
    if (now - this.#secondAt >= SECOND_MS) {
      this.#secondAt = now
      this.#frames = 0
    }
    this.#frames += 1
    if (this.#frames <= this.#framesPerSecond) return 'good'
    if (this.#frames > this.#framesPerSecond * FLOOD) return 'flood'
    return this.#frames === this.#framesPerSecond + 1 ? 'warn' : 'drop'
  }
}
