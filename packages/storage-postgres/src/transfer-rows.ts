import type { Kind, TransferItem, TransferRecord, Origin, Queue } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'

/** Rows as `dump` selects them. */
export interface TransferRecordRow {
  readonly kind: Kind
  readonly id: string
  readonly version: number
  readonly owner: string | null
  readonly status: string | null
  readonly name: string | null
  readonly text: string | null
  readonly expires_at: number | null
  readonly data: string
  readonly total: number
}

export interface TransferItemRow {
  readonly queue: Queue
  readonly id: string
  readonly seq: number
  readonly priority: number
  readonly token: number
  readonly due_at: number
  readonly leased_until: number
  readonly settle_at: number | null
  readonly unclaimed_at: number | null
  readonly run_ms: number | null
  readonly run_at: number | null
  readonly fallback_at: number | null
  readonly deliveries: number
  readonly closing: boolean
  readonly lane: string
  readonly fallback_lane: string | null
  readonly holder: string | null
  readonly payload: string
  readonly total: number
}

export function transferRecord(row: TransferRecordRow, { at }: Origin): TransferRecord {
  const { kind, id, version, owner, status, name, text, data } = row
  return { kind, id, version, owner, status, name, text, expiresMs: spanOf(row.expires_at, at), value: data }
}

export function transferItem(row: TransferItemRow, { at, first, step }: Origin): TransferItem {
  const { queue, id, lane, priority, deliveries, token, holder, payload } = row
  const afterMs = spanOf(row.fallback_at, row.due_at)
  const runEndsMs = spanOf(row.run_at, at)
  const isHeld = holder !== null && token !== 0
  // It ran out of time while leased, before it could have expired by itself, and was taken from its holder.
  const hasRunOut = !isHeld && row.closing && row.run_at !== null && row.run_at <= (row.settle_at ?? Infinity)
  return {
    queue,
    id,
    lane,
    priority,
    order: Math.floor((row.seq - first) / step),
    dueMs: row.due_at - at,
    fallback: row.fallback_lane === null || afterMs === null ? null : { lane: row.fallback_lane, afterMs },
    unclaimedMs: spanOf(row.unclaimed_at, row.due_at),
    settleMs: spanOf(row.settle_at, row.due_at),
    runMs: row.run_ms,
    deliveries,
    lease: isHeld ? { token, holder, endsMs: row.leased_until - at, runEndsMs } : null,
    ranOutMs: hasRunOut ? runEndsMs : null,
    payload,
  }
}

type Row = Readonly<Record<string, string | number | boolean | null>>

export function recordParameter(record: TransferRecord): Row {
  const { kind, id, version, owner, status, name, text, expiresMs, value } = record
  mustBeStorable(`record ${kind}`, id, owner, status, name)
  return { k: kind, i: id, v: version, e: expiresMs, o: owner, s: status, m: name, t: text, d: value }
}

export function itemParameter(item: TransferItem, { first, step }: Origin): Row {
  const { queue, id, lane, priority, fallback, lease, ranOutMs, payload } = item
  mustBeStorable(`item ${queue}`, id, lane, fallback?.lane ?? null, lease?.holder ?? null)
  return {
    q: queue,
    i: id,
    o: first + item.order * step,
    p: priority,
    k: lease?.token ?? 0,
    w: item.dueMs,
    u: lease === null ? ranOutMs : lease.endsMs,
    x: lease === null ? ranOutMs : lease.runEndsMs,
    fa: fallback?.afterMs ?? null,
    s: item.settleMs,
    f: item.unclaimedMs,
    r: item.runMs,
    n: item.deliveries,
    c: ranOutMs !== null,
    l: lane,
    fl: fallback?.lane ?? null,
    h: lease?.holder ?? null,
    d: payload,
  }
}

/** PostgreSQL's text type cannot hold U+0000. Values and payloads are JSON, which escapes it. */
function mustBeStorable(what: string, ...names: readonly (string | null)[]): void {
  for (const name of names) {
    if (name?.includes('\0') !== true) continue
    throw new ImpresarioError(
      'INVALID_REQUEST',
      `The ${what} ${JSON.stringify(names[0])} has a name with the character U+0000, which PostgreSQL cannot store: ${JSON.stringify(name)}.`,
    )
  }
}

function spanOf(at: number | null, from: number): number | null {
  return at === null ? null : at - from
}
