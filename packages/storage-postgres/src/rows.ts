import type { ItemView, Kind, Lease, Queue, Records, Stored } from '@impresario/core'
import type { Json } from '@impresario/protocol'

export interface RecordRow {
  readonly id: string
  readonly version: number
  readonly data: string
}

export interface ClaimRow {
  /** The number of the claim that this row belongs to. */
  readonly r: number
  /** Null in the last row of a claim, which holds the time of the next attempt. */
  readonly id: string | null
  readonly token: number
  readonly lane: string
  readonly priority: number
  readonly payload: string
  readonly deliveries: number
  readonly expires_in: number | null
  readonly turn: string | null
  readonly next_in: number | null
}

export interface ItemRow {
  readonly id: string
  readonly lane: string
  readonly priority: number
  readonly payload: string
  readonly deliveries: number
  readonly due_in: number
  readonly token: number
  readonly holder: string | null
  readonly ends_in: number
}

/** Type boundary where stored text becomes a record again. Only `commit` writes it, by kind. */
export function storedOf<K extends Kind>({ version, data }: Pick<RecordRow, 'version' | 'data'>): Stored<Records[K]> {
  return { value: JSON.parse(data) as Records[K], version }
}

/** Type boundary where stored text becomes a payload again. Only `commit` writes it. */
function payloadOf(text: string): Json {
  return JSON.parse(text) as Json
}

export function leaseOf(queue: Queue, row: ClaimRow, id: string): Lease {
  const { token, lane, priority, payload, deliveries, expires_in: expiresInMs } = row
  const expires = expiresInMs ?? undefined
  return { queue, id, token, lane, priority, payload: payloadOf(payload), deliveries, expiresInMs: expires }
}

export function viewOf(queue: Queue, row: ItemRow): ItemView {
  const { id, lane, priority, payload, deliveries, token, holder } = row
  const isHeld = token !== 0 && row.ends_in > 0
  const lease = isHeld ? { token, holder: holder ?? undefined, endsInMs: row.ends_in } : undefined
  return { queue, id, lane, priority, payload: payloadOf(payload), deliveries, dueInMs: Math.max(row.due_in, 0), lease }
}
