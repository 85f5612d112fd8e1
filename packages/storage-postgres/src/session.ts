import type { Queue } from '@impresario/core'
import type { Connections } from './connections.ts'

export interface SessionOptions {
  readonly connections: Connections
  readonly schema: string
  readonly id: number
  readonly instance: string | undefined
  /** Lanes with items that were released because another process is gone. */
  readonly onFreed: (queue: Queue, lane: string) => void
  readonly onPeers: (hasPeers: boolean) => void
}

/** A process that sends no heartbeat for this long counts as dead: the leases that it held itself are released. */
export const ALIVE_MS = 20_000
const BEAT_MS = 4_000
/** Expired records that are deleted at a time. */
const PURGE_MAX = 1_000

interface Freed {
  readonly queue: Queue | null
  readonly lane: string | null
  readonly others: number | null
}

/**
 * This process among all that use the storage: sends heartbeats, ends the sessions of processes that send none, and
 * deletes expired records. A process that was wrongly taken for dead has lost its claims, and its next heartbeat
 * registers it again.
 */
export class Session {
  readonly #options: SessionOptions
  readonly #timer: NodeJS.Timeout
  #beating: Promise<void> = Promise.resolve()
  #isEnded = false

  constructor(options: SessionOptions) {
    this.#options = options
    let isBusy = false
    this.#timer = setInterval(() => {
      if (isBusy) return
      isBusy = true
      this.#beating = this.#beat().finally(() => {
        isBusy = false
      })
    }, BEAT_MS)
    this.#timer.unref()
  }

  /** Hands back the leases that this process still holds itself. */
  async end(): Promise<void> {
    if (this.#isEnded) return
    this.#isEnded = true
    clearInterval(this.#timer)
    await this.#beating
    const { connections, schema, id, onFreed } = this.#options
    const sql = `SELECT queue, lane, NULL::bigint AS others FROM ${schema}.end_session($1)`
    for (const freed of await connections.call<Freed>(sql, [id], { isRepeatable: true })) tell(freed, onFreed)
  }

  async #beat(): Promise<void> {
    const { connections, schema, id, instance, onFreed, onPeers } = this.#options
    try {
      const sql = `SELECT queue, lane, others FROM ${schema}.heartbeat($1, $2, $3)`
      const rows = await connections.call<Freed>(sql, [id, instance ?? null, ALIVE_MS], { isRepeatable: true })
      for (const row of rows) {
        tell(row, onFreed)
        if (row.others !== null) onPeers(row.others > 0)
      }
      let purged = PURGE_MAX
      while (purged === PURGE_MAX && !this.#isEnded) {
        const [row] = await connections.call<{ readonly n: number }>(`SELECT ${schema}.purge($1) AS n`, [PURGE_MAX], {
          isRepeatable: true,
        })
        purged = row?.n ?? 0
      }
    } catch {
      // The server is unreachable. Callers get the error; the next heartbeat may reach it again.
    }
  }
}

function tell({ queue, lane }: Freed, onFreed: (queue: Queue, lane: string) => void): void {
  if (queue !== null && lane !== null) onFreed(queue, lane)
}
