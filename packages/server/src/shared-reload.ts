import type { Clock, Item, Log, Storage } from '@impresario/core'
import { Pump } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import { errorFields } from './runtime/log.ts'

export interface SharedReloadOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: Log
  /** Reads the files of this instance. What is wrong with them is in the log. */
  readonly reload: () => Promise<unknown>
}

const ID = 'reload'
/** Its version counts the requests for a reload. */
const RECORD = { kind: 'limit', id: ID, value: { paidOffAt: 0 } } as const
/** It is never claimed: its arrival is the message. */
const ITEM: Item = { queue: 'signals', id: ID, lane: ID, priority: 0, delayMs: 0, payload: null }
/** A hint may be lost; with this, everybody has heard of it after five seconds. */
const LOOK_MS = 4_000
const TRIES_MAX = 8

/**
 * Lets a reload that one instance was asked for reach all that share its storage. Each reads the files of
 * its own machine, which must be in place before the request. Others hear of it at once by a hint of the storage, and find
 * it within four seconds without one.
 */
export class SharedReload {
  readonly #options: SharedReloadOptions
  readonly #pump: Pump
  #unwatch: (() => void) | undefined
  #seen = 0

  constructor(options: SharedReloadOptions) {
    this.#options = options
    const { clock, log } = options
    this.#pump = new Pump({ name: 'reload', clock, log, idleMs: LOOK_MS, round: () => this.#round() })
  }

  async start(): Promise<void> {
    this.#seen = await this.#version()
    this.#unwatch = this.#options.storage.watch('signals', (lane) => {
      if (lane === ID) this.#pump.wake()
    })
    await this.#pump.start()
  }

  async stop(): Promise<void> {
    this.#unwatch?.()
    await this.#pump.stop()
  }

  /** Lets the others reload, after this one has. */
  async announce(): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const version = (await this.#version()) + 1
      const outcome = await this.#options.storage.commit({ put: [{ ...RECORD, version }], enqueue: [ITEM] })
      if (outcome !== 'committed') continue
      this.#seen = Math.max(this.#seen, version)
      return
    }
    throw new ImpresarioError('CONFLICT', 'The other instances could not be told to reload: too many reloads at once.')
  }

  async #version(): Promise<number> {
    return (await this.#options.storage.read(RECORD.kind, ID))?.version ?? 0
  }

  async #round(): Promise<{ readonly worked: number; readonly nextInMs: undefined }> {
    const version = await this.#version()
    if (version === this.#seen) return { worked: 0, nextInMs: undefined }
    this.#seen = version
    try {
      await this.#options.reload()
    } catch (error) {
      this.#options.log.error('another instance asked for a reload, which went wrong here', errorFields(error))
    }
    return { worked: 1, nextInMs: undefined }
  }
}
