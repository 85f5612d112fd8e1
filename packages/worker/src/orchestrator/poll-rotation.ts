import type { Connection } from './connection.ts'
import type { OrchestratorMode } from '../settings/settings.ts'

/** With more than one orchestrator to ask, an idle one must not hold the poll for long. */
const SHARED_POLL_MS = 2_000

export interface NextPoll {
  readonly connection: Connection
  readonly timeoutMs: number
}

/** Whom to ask for work next. The connections are in the order of their priority. */
export class PollRotation {
  readonly #connections: readonly Connection[]
  readonly #mode: OrchestratorMode
  readonly #pollMs: number
  /** Of the waterfall: everybody before it had no work. */
  #step = 0

  constructor(connections: readonly Connection[], mode: OrchestratorMode, pollMs: number) {
    this.#connections = connections
    this.#mode = mode
    this.#pollMs = pollMs
  }

  next(): NextPoll | undefined {
    const ready = this.#connections.filter((connection) => connection.readyInMs === 0)
    const connection = this.#choose(ready)
    if (connection === undefined) return undefined
    // While the first one is away its stand-in is asked for short: so soon does the first one get its work back.
    const mayHold = this.#mode === 'failover' ? connection === this.#connections[0] : this.#connections.length === 1
    return { connection, timeoutMs: mayHold ? this.#pollMs : Math.min(SHARED_POLL_MS, this.#pollMs) }
  }

  /** What came of a poll. */
  done(connection: Connection, tasks: number): void {
    this.#step = tasks > 0 ? 0 : (this.#connections.indexOf(connection) + 1) % this.#connections.length
  }

  #choose(ready: readonly Connection[]): Connection | undefined {
    if (this.#mode === 'failover') return ready[0]
    if (this.#mode === 'round_robin') return richest(ready)
    return ready.find((connection) => this.#connections.indexOf(connection) >= this.#step) ?? ready[0]
  }
}

/**
 * When to look again for one to ask, if nothing is announced before. `readyInMs` is each connection's own: one that was not ready when it was looked
 * at may be ready by now, and then it is asked at once. `heldBackMs` counts while nothing may be taken.
 */
export function nextLookMs(
  readyInMs: readonly (number | undefined)[],
  { canTake, heldBackMs }: { readonly canTake: boolean; readonly heldBackMs: number | undefined },
): number | undefined {
  const waits = readyInMs.flatMap((ms) => (ms !== undefined && (canTake || ms > 0) ? [ms] : []))
  if (!canTake && heldBackMs !== undefined) waits.push(heldBackMs)
  return waits.length === 0 ? undefined : Math.min(...waits)
}

/** Everybody gains its weight, the richest is asked and pays for all: polls come evenly spread. */
function richest(ready: readonly Connection[]): Connection | undefined {
  let best: Connection | undefined
  let total = 0
  for (const connection of ready) {
    connection.credit += connection.weight
    total += connection.weight
    if (best === undefined || connection.credit > best.credit) best = connection
  }
  if (best !== undefined) best.credit -= total
  return best
}
