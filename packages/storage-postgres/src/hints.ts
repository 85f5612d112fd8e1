import type { Log, Queue } from '@impresario/core'
import pg from 'pg'
import { clientConfig } from './connections.ts'
import type { Connections } from './connections.ts'
import { Listeners } from './listeners.ts'
import { parseWakeUp, wakeUpTexts } from './wake-up-message.ts'

export interface HintOptions {
  readonly connections: Connections
  readonly schema: string
  readonly channel: string
  readonly session: number
  /** Where to listen: an address that leads to the server itself, or nowhere. */
  readonly listenUrl: string | undefined
  readonly pollMs: number
  readonly log: Log | undefined
}

/** A first hint is told at once; what follows it is gathered for so long: a notification makes its sender wait for all others. */
const GATHER_MS = 3
const RECONNECT_MS = 250
const RECONNECT_MS_MAX = 10_000
/** While notifications arrive the poll only finds what they missed. */
const POLL_FACTOR = 5
/** A notification to ourselves that takes longer does not arrive: there is a pooler in between. */
const ECHO_MS = 5_000
/** Lanes that one poll tells of. */
const POLL_LANES_MAX = 500

/**
 * Tells listeners, here and in other processes, which lanes may have got something.
 *
 * Listeners here are told at once. Others are told by NOTIFY, outside the transaction that wrote: inside it, all writers of
 * the database would have to commit one after the other. Whoever dies in between leaves it to the poll of the others.
 *
 * The listening connection: `off` (no address) or `connecting` → `listening` → `connecting` when it breaks, until `stop`.
 * The poll runs all the time, seldom while listening.
 */
export class Hints {
  readonly #options: HintOptions
  readonly #listeners = new Listeners()
  readonly #untold = new Map<Queue, Set<string>>()
  /** Until the first sign of life has looked around. */
  #hasPeers = true
  #isStopped = false
  #client: pg.Client | undefined
  #isListening = false
  #polledAt = performance.now()
  /** Calls off what will be told to others. */
  #cancelTelling: (() => void) | undefined
  #toldAt = Number.NEGATIVE_INFINITY
  #retry: NodeJS.Timeout | undefined
  #echo: NodeJS.Timeout | undefined
  readonly #poll: NodeJS.Timeout

  constructor(options: HintOptions) {
    this.#options = options
    this.#poll = setInterval(() => {
      void this.#pollWhenDue()
    }, options.pollMs)
    this.#poll.unref()
  }

  /** Resolves when it listens, or has failed to for the first time. */
  async start(): Promise<void> {
    if (this.#options.listenUrl !== undefined) await this.#connect(RECONNECT_MS)
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    return this.#listeners.add(queue, listener)
  }

  /** Whether anybody else uses this storage. Nobody is told while there is nobody. */
  setPeers(hasPeers: boolean): void {
    this.#hasPeers = hasPeers
  }

  tell(queue: Queue, lane: string): void {
    if (this.#hasPeers && !this.#isStopped) {
      const lanes = this.#untold.get(queue) ?? new Set()
      this.#untold.set(queue, lanes)
      lanes.add(lane)
      this.#cancelTelling ??= this.#tellSoon()
    }
    this.#listeners.tell(queue, lane)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#poll)
    clearTimeout(this.#retry)
    clearTimeout(this.#echo)
    if (this.#cancelTelling !== undefined) {
      this.#cancelTelling()
      await this.#tellOthers()
    }
    await this.#client?.end().catch(() => undefined)
  }

  #tellSoon(): () => void {
    const tell = (): void => {
      void this.#tellOthers()
    }
    const waitMs = this.#toldAt + GATHER_MS - performance.now()
    if (waitMs <= 0) {
      const immediate = setImmediate(tell)
      return () => clearImmediate(immediate)
    }
    const timeout = setTimeout(tell, waitMs)
    return () => clearTimeout(timeout)
  }

  async #tellOthers(): Promise<void> {
    this.#cancelTelling = undefined
    this.#toldAt = performance.now()
    const texts = wakeUpTexts(this.#options.session, this.#untold)
    this.#untold.clear()
    await this.#notify(texts)
  }

  async #notify(texts: readonly string[]): Promise<void> {
    const { connections, channel } = this.#options
    try {
      const sql = 'SELECT pg_notify($1, text) FROM unnest($2::text[]) AS text'
      await connections.call(sql, [channel, texts], { isRepeatable: true })
    } catch {
      // A hint: the others find out by their poll.
    }
  }

  async #connect(backoffMs: number): Promise<void> {
    const { listenUrl = '', channel, session, log } = this.#options
    if (this.#isStopped) return
    const client = new pg.Client(clientConfig(listenUrl))
    this.#client = client
    let isOver = false
    const again = (): void => {
      if (isOver) return
      isOver = true
      this.#isListening = false
      if (this.#isStopped) return
      this.#retry = setTimeout(() => {
        void this.#connect(Math.min(backoffMs * 2, RECONNECT_MS_MAX))
      }, backoffMs)
      this.#retry.unref()
      void client.end().catch(() => undefined)
    }
    client.on('error', again)
    client.on('end', again)
    client.on('notification', ({ payload }) => this.#hear(payload))
    try {
      await client.connect()
      await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`)
    } catch (error) {
      log?.warn('no notifications from PostgreSQL; the storage polls meanwhile', { error: String(error) })
      again()
      return
    }
    this.#isListening = true
    this.#echo = setTimeout(() => this.#noEcho(client), ECHO_MS)
    this.#echo.unref()
    // Tells the others that we are here, and us that notifications arrive.
    await this.#notify([JSON.stringify({ from: session })])
    await this.#pollAll()
  }

  #noEcho(client: pg.Client): void {
    if (this.#client !== client || this.#isStopped) return
    this.#isListening = false
    this.#options.log?.warn(
      'notifications do not arrive on this address, probably because of a pooler; the storage polls',
      {
        poll_ms: this.#options.pollMs,
      },
    )
  }

  #hear(text: string | undefined): void {
    const message = parseWakeUp(text)
    if (message === undefined) return
    if (message.from === this.#options.session) {
      clearTimeout(this.#echo)
      return
    }
    this.#hasPeers = true
    const { queue, lanes } = message
    if (queue === undefined) return
    if (lanes === null || lanes === undefined) void this.#pollQueue(queue)
    else for (const lane of lanes) this.#listeners.tell(queue, lane)
  }

  async #pollWhenDue(): Promise<void> {
    const everyMs = this.#isListening ? this.#options.pollMs * POLL_FACTOR : this.#options.pollMs
    if (performance.now() - this.#polledAt < everyMs) return
    await this.#pollAll()
  }

  async #pollAll(): Promise<void> {
    this.#polledAt = performance.now()
    for (const queue of this.#listeners.queues()) await this.#pollQueue(queue)
  }

  async #pollQueue(queue: Queue): Promise<void> {
    const { connections, schema } = this.#options
    try {
      const sql = `SELECT ${schema}.ready_lanes($1, $2) AS lanes`
      const [row] = await connections.call<{ readonly lanes: readonly string[] }>(sql, [queue, POLL_LANES_MAX], {
        isRepeatable: true,
      })
      if (this.#isStopped) return
      for (const lane of row?.lanes ?? []) this.#listeners.tell(queue, lane)
    } catch {
      // The next poll may find the server again.
    }
  }
}
