import type { Kind, TransferItem, TransferRecord, Origin, Queue } from '@impresario/core'
import { pack, unpack } from '../client/codec.ts'

/* How entries of a transfer look in this storage. The heads are those of the library, in the order of its constants. */

type RecordHead = readonly [
  version: number,
  expiresAt: number,
  owner: string | false,
  status: string | false,
  name: string | false,
  hasText: boolean,
]

type ItemHead = readonly [
  state: number,
  token: number,
  until: number,
  holder: string | false,
  instance: string | false,
  count: number,
  isClosed: boolean,
  runAt: number,
  isBackOn: boolean,
  lane: string,
  priority: number,
  due: number,
  rank: number,
  sequence: string,
  backLane: string | false,
  backAt: number,
  settleAt: number,
  firstAt: number,
  runMs: number | false,
]

export function transferRecord(
  kind: Kind,
  [id, head, body, text]: readonly [Buffer, Buffer, Buffer, Buffer],
  { at }: Origin,
): TransferRecord {
  const [version, expiresAt, owner, status, name, hasText] = unpack<RecordHead>(head)
  return {
    kind,
    id: id.toString(),
    version,
    owner: orNull(owner),
    status: orNull(status),
    name: orNull(name),
    text: hasText ? text.toString() : null,
    expiresMs: spanOf(expiresAt, at),
    value: jsonOf(body),
  }
}

export function transferItem(
  queue: Queue,
  [id, head, body]: readonly [Buffer, Buffer, Buffer],
  { at, first, step }: Origin,
): TransferItem {
  const [, token, until, holder, , deliveries, isClosed, runAt, , lane, priority, ...times] = unpack<ItemHead>(head)
  const [due, , sequence, backLane, backAt, settleAt, firstAt, runMs] = times
  const dueAt = Math.ceil(due)
  const afterMs = spanOf(backAt, dueAt)
  const runEndsMs = spanOf(runAt, at)
  const isHeld = holder !== false && token !== 0
  return {
    queue,
    id: id.toString(),
    lane,
    priority,
    order: Math.floor((Number.parseInt(sequence, 16) - first) / step),
    dueMs: dueAt - at,
    fallback: backLane === false || afterMs === null ? null : { lane: backLane, afterMs },
    unclaimedMs: spanOf(firstAt, dueAt),
    settleMs: spanOf(settleAt, dueAt),
    runMs: runMs === false || runMs === Infinity ? null : Math.ceil(runMs),
    deliveries,
    lease: isHeld ? { token, holder, endsMs: Math.ceil(until) - at, runEndsMs } : null,
    // It ran out of time while leased, before it could have expired by itself, and was taken from its holder.
    ranOutMs: !isHeld && isClosed && runAt <= settleAt ? runEndsMs : null,
    payload: jsonOf(body),
  }
}

/** In the form that the library's `put` takes. */
export function recordFields(record: TransferRecord): readonly unknown[] {
  const { kind, id, version, owner, status, name, text, expiresMs } = record
  return [kind, id, version, owner ?? false, status ?? false, name ?? false, text ?? false, expiresMs ?? false]
}

/** In the form that the library's `lodge` takes. */
export function itemFields(item: TransferItem, { at, first, step }: Origin): readonly unknown[] {
  const { queue, id, lane, priority, fallback, lease, ranOutMs } = item
  const due = at + item.dueMs
  const since = (ms: number | null | undefined): number | false => (ms === null || ms === undefined ? false : due + ms)
  const until = lease === null ? (ranOutMs === null ? 0 : at + ranOutMs) : at + lease.endsMs
  const runEndsMs = lease === null ? ranOutMs : lease.runEndsMs
  return [
    queue,
    id,
    lane,
    priority,
    first + item.order * step,
    due,
    fallback?.lane ?? false,
    since(fallback?.afterMs),
    since(item.settleMs),
    since(item.unclaimedMs),
    item.runMs ?? false,
    item.deliveries,
    lease?.token ?? 0,
    lease?.holder ?? false,
    until,
    runEndsMs === null ? false : at + runEndsMs,
    ranOutMs !== null,
  ]
}

/** A body as this storage keeps it. */
export function bodyOf(json: string): Buffer {
  return pack(JSON.parse(json))
}

function jsonOf(body: Buffer): string {
  return JSON.stringify(unpack(body))
}

/**
 * Lone surrogates, which JSON writes as escapes, and a name that the library changes. Everything else is read back
 * unchanged.
 */
const UNFIT = /\\u[dD]|__proto__/

/** The value read back from a body. */
export function fittedJson(json: string): string {
  return UNFIT.test(json) ? jsonOf(bodyOf(json)) : json
}

function orNull(text: string | false): string | null {
  return text === false ? null : text
}

/** Whole milliseconds, as all storages can hold them; `null` means never. */
function spanOf(at: number, from: number): number | null {
  return at === Infinity ? null : Math.ceil(at) - from
}
