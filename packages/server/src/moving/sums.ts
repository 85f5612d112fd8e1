import { hash } from 'node:crypto'
import type { MovedItem, MovedPage, MovedRecord } from '@impresario/core'

/** What there is of one kind or in one queue. */
export interface Sum {
  readonly count: number
  /** Of all entries, in whatever order they came: 32 hexadecimal digits. */
  readonly checksum: string
}

/** By name: `job`, … for records, `tasks queue`, … for items. */
export type SumTable = Readonly<Record<string, Sum>>

interface Running {
  count: number
  sum: bigint
}

/**
 * Counts entries and adds their hashes up. A sum does not depend on the order in which storages give their entries out, and
 * unlike an exclusive or it notices an entry that came twice.
 */
export class Sums {
  readonly #running = new Map<string, Running>()

  static from(table: SumTable): Sums {
    const sums = new Sums()
    for (const [name, { count, checksum }] of Object.entries(table)) {
      sums.#running.set(name, { count, sum: BigInt(`0x${checksum}`) })
    }
    return sums
  }

  get total(): number {
    let total = 0
    for (const { count } of this.#running.values()) total += count
    return total
  }

  add({ records, items }: MovedPage): void {
    for (const record of records) this.#add(record.kind, recordText(record))
    for (const item of items) this.#add(`${item.queue} queue`, itemText(item))
  }

  table(): SumTable {
    const names = [...this.#running].sort(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(
      names.map(([name, { count, sum }]) => [name, { count, checksum: sum.toString(16).padStart(32, '0') }]),
    )
  }

  #add(name: string, text: string): void {
    const digest = hash('sha256', text, 'buffer')
    const value = (digest.readBigUInt64BE(0) << 64n) | digest.readBigUInt64BE(8)
    const running = this.#running.get(name)
    if (running === undefined) this.#running.set(name, { count: 1, sum: value })
    else {
      running.count++
      running.sum = BigInt.asUintN(128, running.sum + value)
    }
  }
}

/** Where two tables differ, in words. */
export function differences(expected: SumTable, found: SumTable): readonly string[] {
  const names = [...new Set([...Object.keys(expected), ...Object.keys(found)])].sort()
  return names.flatMap((name) => {
    const { count: sent = 0, checksum: sentSum = '' } = expected[name] ?? {}
    const { count: read = 0, checksum: readSum = '' } = found[name] ?? {}
    if (sent !== read) return [`${name}: ${sent} were sent and ${read} are there`]
    return sentSum === readSum ? [] : [`${name}: all ${sent} are there, but not all as they were`]
  })
}

/** The long part comes last as it is: to write it as JSON once more would take as long as everything else. */
function recordText(record: MovedRecord): string {
  const { kind, id, version, owner, status, name, text, expiresMs, value } = record
  return `${JSON.stringify([kind, id, version, owner, status, name, text, expiresMs])}${value}`
}

function itemText(item: MovedItem): string {
  const { queue, id, lane, priority, order, dueMs, fallback, lease } = item
  const short = JSON.stringify([
    queue,
    id,
    lane,
    priority,
    order,
    dueMs,
    fallback === null ? null : [fallback.lane, fallback.afterMs],
    item.unclaimedMs,
    item.settleMs,
    item.runMs,
    item.deliveries,
    lease === null ? null : [lease.token, lease.holder, lease.endsMs, lease.runEndsMs],
    item.ranOutMs,
  ])
  return `${short}${item.payload}`
}
