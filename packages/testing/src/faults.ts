import type { Chance } from './chance.ts'

/** Faults that happen by chance, each with a probability from 0 to 1. */
export interface Faults {
  /** At each commit: the orchestrator dies, before or after it, and another one starts on the same storage. */
  readonly orchestratorCrash?: number
  /** For each task that a worker gets: it is lost there, as if the worker's process had died. */
  readonly lostTask?: number
  /** For each result: it arrives and the reply is lost, so that the worker sends it again. */
  readonly lostReply?: number
  /** After so many faults there are no more, so that every job can end. Default: 100. */
  readonly max?: number
}

export class FaultSource {
  readonly #faults: Faults
  readonly #chance: Chance
  #left: number

  constructor(faults: Faults, chance: Chance) {
    this.#faults = faults
    this.#chance = chance
    this.#left = faults.max ?? 100
  }

  happens(fault: 'orchestratorCrash' | 'lostTask' | 'lostReply'): boolean {
    if (this.#left <= 0 || !this.#chance.happens(this.#faults[fault])) return false
    this.#left -= 1
    return true
  }

  /** Whether a crash comes before what it interrupts. */
  isBefore(): boolean {
    return this.#chance.happens(0.5)
  }
}
