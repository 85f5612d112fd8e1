import type { Clock, Log, Random, Storage } from '@impresario/core'
import { TaskFlow } from './task-flow.ts'
import type { TaskRate } from './task-flow.ts'
import { Signals } from './signals.ts'
import type { Introduction, Peer } from './signals.ts'

export interface CompanyOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Who this instance is, for the others; without it they only hear that there is one. */
  readonly identity?: Omit<Introduction, 'leads'> | undefined
}

/** The instances on one storage: what they tell each other, and what this one knows of the others. */
export class Company {
  readonly signals: Signals
  readonly flow: TaskFlow

  constructor(options: CompanyOptions, isShared: boolean, leads: () => readonly string[]) {
    const { storage, clock, random, log, identity } = options
    const introduce = identity && ((): Introduction => ({ ...identity, leads: leads() }))
    this.signals = new Signals({ storage, clock, random, log, isShared, introduce })
    this.flow = new TaskFlow({ clock, signals: this.signals, name: identity?.name })
  }

  /** The other instances, as far as they are heard. */
  get peers(): readonly Peer[] {
    return this.signals.peers
  }

  /** How many tasks of each type came and went in the last minute, at all instances. */
  get taskRates(): readonly TaskRate[] {
    return this.flow.rates()
  }
}
