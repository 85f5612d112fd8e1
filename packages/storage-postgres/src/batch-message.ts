import { foldedText } from '@impresario/core'
import type { Batch, BornClaim, Item, Put } from '@impresario/core'
import { jsonWeight } from '@impresario/protocol'
import type { Touches } from './names-in-use.ts'
import { mustBeStorableName } from './storable-name.ts'

export function touchesOf(batch: Batch): Touches {
  const writes = new Set<string>()
  const reads = new Set<string>()
  const { put = [], drop = [], enqueue = [], remove = [], settle, guard } = batch
  for (const { kind, id } of put) writes.add(recordName(kind, id))
  for (const { kind, id } of drop) writes.add(recordName(kind, id))
  for (const { queue, id } of enqueue) writes.add(itemName(queue, id))
  for (const { queue, id } of remove) writes.add(itemName(queue, id))
  if (settle !== undefined) writes.add(itemName(settle.queue, settle.id))
  if (guard !== undefined) reads.add(itemName(guard.queue, guard.id))
  return { writes, reads }
}

/** Approximate size of the batch's data in memory, which is larger than its message. */
export function weightOf({ put = [], enqueue = [] }: Batch): number {
  let weight = 0
  for (const { value } of put) weight += jsonWeight(value)
  for (const { payload } of enqueue) weight += jsonWeight(payload)
  return weight
}

const recordName = (kind: string, id: string): string => `r ${kind} ${id}`
export const itemName = (queue: string, id: string): string => `i ${queue} ${id}`

type Row = Readonly<Record<string, string | number | boolean | null | undefined>>

interface Named {
  readonly name: string
  readonly row: Row
}

/** A group of batches as the parameters of the function `commit`. An empty part is null and is skipped. */
export function commitParameters(batches: readonly Batch[], session: number): readonly (string | null)[] {
  const locks: Named[] = []
  const keys: Named[] = []
  const puts: Named[] = []
  const items: Named[] = []
  let order = 0
  for (const [b, batch] of batches.entries()) {
    const { put = [], drop = [], enqueue = [] } = batch
    locks.push(...lockRows(batch, b))
    for (const item of newest(enqueue, ({ queue, id }) => itemName(queue, id))) {
      items.push({ name: itemName(item.queue, item.id), row: itemRow(item, b, order++, session) })
    }
    keys.push(...keyRows(put, drop, b))
    for (const one of newest(put, ({ kind, id }) => recordName(kind, id))) {
      puts.push({ name: recordName(one.kind, one.id), row: putRow(one, b) })
    }
  }
  // Without claims and removals, the items are locked as they are written, in the same order.
  if (locks.length > 0) for (const { name, row } of items) locks.push({ name, row: { q: row['q'], i: row['i'] } })
  return [inOrder(locks), inOrder(keys), inOrder(puts), inOrder(items)]
}

/** Items that a batch names without writing them: claims with their tokens (`t`), and removed items (`g`). */
function lockRows({ settle, guard, remove = [] }: Batch, b: number): Named[] {
  const row = (queue: string, id: string, more: Row): Named => {
    const i = checked(id)
    return { name: itemName(queue, i), row: { b, q: queue, i, ...more } }
  }
  return [
    ...(settle === undefined ? [] : [row(settle.queue, settle.id, { t: settle.token, g: true })]),
    ...(guard === undefined ? [] : [row(guard.queue, guard.id, { t: guard.token })]),
    ...newest(remove, ({ queue, id }) => itemName(queue, id)).map(({ queue, id }) => row(queue, id, { g: true })),
  ]
}

/**
 * What a batch writes or drops under one name is one key: its new version, if there is one, and whether the old one is
 * dropped first.
 */
function keyRows(put: readonly Put[], drop: NonNullable<Batch['drop']>, b: number): readonly Named[] {
  const rows = new Map<string, Row>()
  for (const { kind, id } of drop) rows.set(recordName(kind, id), { b, k: kind, i: checked(id), d: true })
  for (const { kind, id, version, facets } of put) {
    const name = recordName(kind, id)
    const before = rows.get(name)
    const { o, s, m } = facetColumns(facets)
    // Two different versions cannot both follow the stored one, so the batch conflicts, as version -1 always does.
    const v = before?.['v'] === undefined || before['v'] === version ? version : -1
    rows.set(name, { b, k: kind, i: checked(id), v, d: before?.['d'] ?? false, o, s, m })
  }
  return [...rows].map(([name, row]) => ({ name, row }))
}

function putRow({ kind, id, version, value, facets, expiresMs }: Put, b: number): Row {
  const { o, s, m, t } = facetColumns(facets)
  // The value is text inside the message, so that it can hold characters that the server does not accept in the message
  // itself (U+0000).
  const d = JSON.stringify(value)
  return { b, k: kind, i: checked(id), v: version, e: whole(expiresMs), o, s, m, t, d }
}

function facetColumns(facets: Put['facets']): { readonly [K in 'o' | 's' | 'm' | 't']: string | null } {
  const { owner, status, name, text } = facets ?? {}
  return {
    o: optional(owner),
    s: optional(status),
    m: optional(name),
    t: text === undefined ? null : searchable(text),
  }
}

function itemRow(item: Item, b: number, o: number, session: number): Row {
  const { queue, id, lane, priority, delayMs, payload, fallback, unclaimedMs, settleMs, runMs, claimed } = item
  const second = fallback === undefined || fallback.lane === lane ? undefined : fallback
  return {
    o,
    b,
    q: queue,
    i: checked(id),
    l: checked(lane),
    p: priority,
    w: Math.max(Math.ceil(delayMs), 0),
    fl: optional(second?.lane),
    fa: whole(second?.afterMs),
    u: whole(unclaimedMs),
    s: whole(settleMs),
    r: whole(runMs),
    d: JSON.stringify(payload),
    ...(claimed === undefined ? {} : claimColumns(claimed, session)),
  }
}

function claimColumns({ token, leaseMs, holder }: BornClaim, session: number): Row {
  const own = holder === undefined ? { cs: session } : { ch: checked(holder) }
  return { ct: token, cl: whole(leaseMs), ...own }
}

function optional(text: string | undefined): string | null {
  return text === undefined ? null : checked(text)
}

/** Search text as the server can store it. Characters that it cannot store are never searched for. */
export function searchable(text: string): string {
  return foldedText(text).replaceAll('\0', '\uFFFD')
}

/** Refuses data that could not be written, before it is sent in a group with others. */
export function mustBeStorable({ put = [], drop = [], enqueue = [], remove = [], settle, guard }: Batch): void {
  for (const { id, facets } of put) mustBeStorableName(id, facets?.owner, facets?.status, facets?.name)
  for (const { id, lane, fallback } of enqueue) mustBeStorableName(id, lane, fallback?.lane)
  for (const { id } of [...drop, ...remove]) mustBeStorableName(id)
  mustBeStorableName(settle?.id, guard?.id)
}

/** Lone surrogates become the replacement character, as on every disk. */
function checked(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}

function whole(ms: number | undefined): number | null {
  return ms === undefined || ms === Infinity ? null : Math.ceil(ms)
}

/** If several have the same name, the last one counts. */
function newest<T>(list: readonly T[], nameOf: (one: T) => string): readonly T[] {
  if (list.length < 2) return list
  return [...new Map(list.map((one) => [nameOf(one), one])).values()]
}

/** Every process locks in this order. */
function inOrder(rows: readonly Named[]): string | null {
  const sorted = rows.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  return rows.length === 0 ? null : JSON.stringify(sorted.map(({ row }, n) => ({ n, ...row })))
}
