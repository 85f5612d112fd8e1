import { hash } from 'node:crypto'
import type { TransferItem, TransferPage, TransferRecord } from '@impresario/core'

/** What there is of one kind or in one queue. */
export interface Sum {
  readonly count: number
  /**
   * Of all entries, in whatever order they came: 32 hexadecimal digits. Without times, which are spans from the moment of the
   * move, and without places in a queue. So the same entries have the same one however often they are moved.
   */
  readonly checksum: string
  /** The same with times and places: equal on both sides of one transfer. */
  readonly timed: string
}

/** By name: `job`, … for records, `tasks queue`, … for items. */
export type SumTable = Readonly<Record<string, Sum>>

interface Running {
  count: number
  plain: bigint
  timed: bigint
}

/**
 * Counts entries and adds their hashes up. A sum does not depend on the order in which storages give their entries out, and
 * unlike an exclusive or it notices an entry that came twice.
 */
export class Sums {
  readonly #running = new Map<string, Running>()

  static from(table: SumTable): Sums {
    const sums = new Sums()
    for (const [name, { count, checksum, timed }] of Object.entries(table)) {
      sums.#running.set(name, { count, plain: BigInt(`0x${checksum}`), timed: BigInt(`0x${timed}`) })
    }
    return sums
  }

  get total(): number {
    let total = 0
    for (const { count } of this.#running.values()) total += count
    return total
  }

  add({ records, items }: TransferPage): void {
    for (const record of records) this.#add(record.kind, recordText(record), JSON.stringify(record.expiresMs))
    for (const item of items) this.#add(`${item.queue} queue`, itemText(item), itemTimes(item))
  }

  table(): SumTable {
    const names = [...this.#running].sort(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(
      names.map(([name, { count, plain, timed }]) => [name, { count, checksum: digits(plain), timed: digits(timed) }]),
    )
  }

  #add(name: string, text: string, times: string): void {
    const digest = hash('sha256', text, 'buffer')
    const plain = number(digest)
    // What is long is hashed once.
    const timed = number(hash('sha256', `${digest.toString('hex')}${times}`, 'buffer'))
    const running = this.#running.get(name)
    if (running === undefined) this.#running.set(name, { count: 1, plain, timed })
    else {
      running.count++
      running.plain = BigInt.asUintN(128, running.plain + plain)
      running.timed = BigInt.asUintN(128, running.timed + timed)
    }
  }
}

function number(digest: Buffer): bigint {
  return (digest.readBigUInt64BE(0) << 64n) | digest.readBigUInt64BE(8)
}

function digits(sum: bigint): string {
  return sum.toString(16).padStart(32, '0')
}

/** Where two tables differ, in words. */
export function differences(expected: SumTable, found: SumTable): readonly string[] {
  const names = [...new Set([...Object.keys(expected), ...Object.keys(found)])].sort()
  return names.flatMap((name) => {
    const { count: sent = 0, timed: sentSum = '' } = expected[name] ?? {}
    const { count: read = 0, timed: readSum = '' } = found[name] ?? {}
    if (sent !== read) return [`${name}: ${sent} were sent and ${read} are there`]
    return sentSum === readSum ? [] : [`${name}: all ${sent} are there, but not all as they were`]
  })
}

/** The long part comes last as it is: to write it as JSON once more would take as long as everything else. */
function recordText(record: TransferRecord): string {
  const { kind, id, version, owner, status, name, text, value } = record
  return `${JSON.stringify([kind, id, version, owner, status, name, text])}${value}`
}

function itemText(item: TransferItem): string {
  const { queue, id, lane, priority, fallback, lease } = item
  const short = JSON.stringify([
    queue,
    id,
    lane,
    priority,
    fallback === null ? null : [fallback.lane, fallback.afterMs],
    item.unclaimedMs,
    item.settleMs,
    item.runMs,
    item.deliveries,
    lease === null ? null : [lease.token, lease.holder],
    item.ranOutMs !== null,
  ])
  return `${short}${item.payload}`
}

function itemTimes({ order, dueMs, lease, ranOutMs }: TransferItem): string {
  return JSON.stringify([order, dueMs, lease?.endsMs ?? null, lease?.runEndsMs ?? null, ranOutMs])
}
