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
  /** Where to listen: an address that leads directly to the server, or `undefined`. */
  readonly listenUrl: string | undefined
  readonly pollMs: number
  readonly log: Log | undefined
}

/**
 * The first hint is sent at once. Later ones are collected for this long, because a notification makes its sender wait
 * for all others.
 */
const GATHER_MS = 3
const RECONNECT_MS = 250
const RECONNECT_MS_MAX = 10_000
/** While notifications arrive, the poll only finds what they missed. */
const POLL_FACTOR = 5
/** If a notification to ourselves takes longer than this, it does not arrive: there is a pooler in between. */
const ECHO_MS = 5_000
/** Maximum number of lanes that one poll reports. */
const POLL_LANES_MAX = 500

/**
 * Tells listeners, here and in other processes, which lanes may have received items.
 *
 * Listeners here are called at once. Other processes are notified by NOTIFY, outside the transaction that wrote: inside
 * it, all writers of the database would have to commit one after the other. If a process dies in between, the other
 * processes find the items by their poll.
 *
 * The listening connection: `off` (no address) or `connecting` → `listening` → `connecting` when it breaks, until
 * `stop`. The poll always runs, but rarely while listening.
 */
export class Hints {
  readonly #options: HintOptions
  readonly #listeners = new Listeners()
  readonly #untold = new Map<Queue, Set<string>>()
  /** Assumed until the first heartbeat has checked. */
  #hasPeers = true
  #isStopped = false
  #client: pg.Client | undefined
  #isListening = false
  #polledAt = performance.now()
  /** Cancels the pending notifications to other processes. */
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

  /** Resolves when it listens, or when the first attempt has failed. */
  async start(): Promise<void> {
    if (this.#options.listenUrl !== undefined) await this.#connect(RECONNECT_MS)
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    return this.#listeners.add(queue, listener)
  }

  /** Whether other processes use this storage. Without any, no notifications are sent. */
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
      // Only a hint: the others find the items by their poll.
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
    // Announces this process to the others, and checks that notifications arrive here.
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
      // The next poll may reach the server again.
    }
  }
}
