import { randomUUID } from 'node:crypto'
import { KINDS, markOf, markText, mustBeOwn, QUEUES } from '@impresario/core'
import type {
  EntryCounts,
  Kind,
  Transferable,
  TransferItem,
  TransferPage,
  TransferRecord,
  TransferMark,
  Origin,
  Outline,
  PageSize,
  Queue,
} from '@impresario/core'
import { parsedAddress } from '../client/address.ts'
import { Caller } from '../client/caller.ts'
import { Connection } from '../client/connection.ts'
import { bodyOf, fittedJson, itemFields, transferItem, transferRecord, recordFields } from './transfer-entries.ts'
import { explained, MARK, prepare, WAIT_MS } from '../open.ts'
import { placementOf } from '../shards/placement.ts'
import type { ShardPlacement } from '../shards/placement.ts'
import { textOf, triplesOf } from '../client/replies.ts'
import { Transactions } from '../shards/transactions.ts'

/** The namespace at this address, for a transfer; `undefined` if it does not exist and is not to be created. */
export async function openTransferableNamespace(options: {
  readonly url: string
  readonly mayCreate: boolean
}): Promise<TransferableNamespace | undefined> {
  const address = parsedAddress(options.url)
  const connection = new Connection({ address, waitMs: WAIT_MS })
  try {
    if (!options.mayCreate && (await connection.found('format')) === undefined) {
      await connection.close()
      return undefined
    }
    await prepare(connection, address, undefined)
    const storage = new TransferableNamespace(connection, address.shards)
    await storage.recover()
    return storage
  } catch (error) {
    await connection.close()
    throw explained(error)
  }
}

/** Where a dump continues: the shard, and in it the records of a kind or the items of a queue. */
type DumpPosition =
  | { readonly shard: number; readonly kind: Kind; readonly after: string | false }
  | { readonly shard: number; readonly queue: Queue; readonly at: readonly [number, number, number] }

/** Entries that one call reads or writes: about five milliseconds of the server, which does nothing else meanwhile. */
const CALL_MAX = 500
const OVERDUE_MAX = 5_000
const BEGINNING = [1, 0, 0] as const
/** Token numbers restart every millisecond, with this many for each; see `token_source`. */
const TOKENS_PER_MS = 2048

/**
 * Reads the shards one after the other: in each, the records in id order, and then the sets that hold the items by
 * state. These do not change while no instance uses them.
 */
class TransferableNamespace implements Transferable {
  readonly #connection: Connection
  readonly #caller: Caller
  readonly #placement: ShardPlacement
  readonly #shards: readonly number[]

  constructor(connection: Connection, shards: number) {
    this.#connection = connection
    this.#caller = new Caller({ wire: connection, shards })
    this.#placement = placementOf(shards)
    this.#shards = Array.from({ length: shards }, (_, shard) => shard)
  }

  /** Batches over several shards that were decided, but not written everywhere when their process ended. */
  async recover(): Promise<void> {
    if (this.#shards.length === 1) return
    const origin = randomUUID()
    const names = { origin, instance: `${origin}\n`, hands: `${origin}\n${origin}` }
    const transactions = new Transactions({ caller: this.#caller, ...names, patienceMs: 0 })
    await transactions.recover()
    await transactions.quiet()
  }

  async mark(): Promise<TransferMark | undefined> {
    return markOf(await this.#connection.found(MARK))
  }

  async setMark(mark: TransferMark | undefined): Promise<void> {
    await this.#connection.keep(MARK, mark === undefined ? undefined : markText(mark))
  }

  /** Instances subscribe to hints as long as they run; one of them is the leader. */
  async users(): Promise<readonly string[]> {
    const hands = await this.#caller.call<readonly Buffer[]>('hands', ['leaders'], 0)
    const names = new Set(hands.map((name) => name.toString().split('\n')[0] ?? ''))
    const listeners = await this.#connection.listeners()
    const others = listeners - names.size
    return [...names, ...(others > 0 ? [`${others} that listen`] : [])]
  }

  async outline(): Promise<Outline> {
    const found = await this.#all<readonly [number, number, number]>('outline', [])
    const now = found[0]?.[0] ?? 0
    const stride = this.#shards.length
    return {
      now,
      firstOrder: 0,
      lastOrder: Math.max(...found.map(([, seq]) => seq)),
      lastToken: Math.max(now * TOKENS_PER_MS, ...found.map((one) => (one[2] + 1) * stride)),
    }
  }

  async counts(): Promise<EntryCounts> {
    const totals = await this.#all<readonly number[]>('tally', [KINDS, QUEUES])
    const sums = [...KINDS, ...QUEUES].map((_, index) => totals.reduce((sum, one) => sum + (one[index] ?? 0), 0))
    const records = new Map<string, number>(KINDS.map((kind, index) => [kind, sums[index] ?? 0]))
    for (const shard of this.#shards) {
      for (let offset = 0; ; offset += OVERDUE_MAX) {
        const kinds = await this.#caller.call<readonly Buffer[]>('overdue', [offset, OVERDUE_MAX], shard)
        for (const kind of kinds.map(textOf)) records.set(kind, (records.get(kind) ?? 0) - 1)
        if (kinds.length < OVERDUE_MAX) break
      }
    }
    const items = QUEUES.map((queue, index) => [queue, sums[KINDS.length + index] ?? 0] as const)
    return { records: someOf(records), items: someOf(items) }
  }

  fitted({ records, items, next }: TransferPage): TransferPage {
    return {
      records: records.map((record) => ({ ...record, value: fittedJson(record.value) })),
      items: items.map((item) => ({ ...item, payload: fittedJson(item.payload) })),
      next,
    }
  }

  /** Makes as many calls as it takes to fill the page: most kinds and queues of most shards are empty. */
  async dump(origin: Origin, cursor: string | undefined, size: PageSize): Promise<TransferPage> {
    const records: TransferRecord[] = []
    const items: TransferItem[] = []
    let place: DumpPosition | undefined = cursor === undefined ? this.#firstOf(0) : placeOf(cursor)
    let bytes = 0
    while (place !== undefined && bytes < size.bytesMax && records.length + items.length < size.entriesMax) {
      const left = {
        entriesMax: Math.min(size.entriesMax - records.length - items.length, CALL_MAX),
        bytesMax: size.bytesMax - bytes,
      }
      if ('kind' in place) {
        const { found, after }: Found<TransferRecord, string | false> = await this.#dumpRecords(place, origin, left)
        records.push(...found)
        for (const { value } of found) bytes += value.length
        place = after === false ? this.#afterKind(place) : { ...place, after }
      } else {
        const { found, after }: Found<TransferItem, DumpPosition | undefined> = await this.#dumpItems(
          place,
          origin,
          left,
        )
        items.push(...found)
        for (const { payload } of found) bytes += payload.length
        place = after
      }
    }
    return { records, items, next: place === undefined ? undefined : JSON.stringify(place) }
  }

  async load(origin: Origin, page: TransferPage, mark: TransferMark): Promise<void> {
    mustBeOwn(await this.mark(), mark)
    const parts = new Map<number, { readonly records: TransferRecord[]; readonly items: TransferItem[] }>()
    const partOf = (shard: number): { readonly records: TransferRecord[]; readonly items: TransferItem[] } => {
      const part = parts.get(shard) ?? { records: [], items: [] }
      parts.set(shard, part)
      return part
    }
    for (const record of page.records) partOf(this.#placement.ofRecord(record.kind, record.id)).records.push(record)
    for (const item of page.items) partOf(this.#placement.ofItem(item.queue, item.id)).items.push(item)
    await Promise.all([...parts].map(([shard, { records, items }]) => this.#loadIn(shard, origin, { records, items })))
    await this.setMark(mark)
  }

  async finish(lastToken: number): Promise<void> {
    await this.#all('raise_token', [Math.ceil(lastToken / this.#shards.length)])
  }

  async clear(): Promise<void> {
    for (const shard of this.#shards) {
      let gone: number
      do gone = await this.#caller.call<number>('clear_some', [KINDS, QUEUES, CALL_MAX / 10], shard)
      while (gone > 0)
    }
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  async #loadIn(shard: number, origin: Origin, { records, items }: Omit<TransferPage, 'next'>): Promise<void> {
    for (let start = 0; start < Math.max(records.length, items.length); start += CALL_MAX) {
      const [some, others] = [records.slice(start, start + CALL_MAX), items.slice(start, start + CALL_MAX)]
      const puts = some.map(recordFields)
      const question = [origin.at, puts, others.map((item) => itemFields(item, origin))]
      const bodies = [...some.map(({ value }) => bodyOf(value)), ...others.map(({ payload }) => bodyOf(payload))]
      await this.#caller.send('load_page', [question, ...bodies], shard)
    }
  }

  async #dumpRecords(
    { shard, kind, after }: Extract<DumpPosition, { kind: Kind }>,
    origin: Origin,
    { entriesMax, bytesMax }: PageSize,
  ): Promise<Found<TransferRecord, string | false>> {
    const question = [kind, after, entriesMax, bytesMax, origin.at]
    const [last, ...rows] = await this.#caller.call<readonly Buffer[]>('dump_records', question, shard)
    const found: TransferRecord[] = []
    for (let index = 0; index + 3 < rows.length; index += 4) {
      found.push(transferRecord(kind, rows.slice(index, index + 4) as unknown as RecordRow, origin))
    }
    return { found, after: last === undefined || last.length === 0 ? false : last.toString() }
  }

  async #dumpItems(
    place: Extract<DumpPosition, { queue: Queue }>,
    origin: Origin,
    { entriesMax, bytesMax }: PageSize,
  ): Promise<Found<TransferItem, DumpPosition | undefined>> {
    const { shard, queue, at } = place
    const question = [queue, ...at, entriesMax, bytesMax]
    const reply = await this.#caller.call<readonly (Buffer | number)[]>('dump_items', question, shard)
    const [stage = 0, row = 0, offset = 0] = reply.slice(0, 3).map(Number)
    const rows = triplesOf(reply.slice(3) as readonly Buffer[])
    const after = stage === 0 ? this.#afterQueue(place) : { shard, queue, at: [stage, row, offset] as const }
    return { found: rows.map((one) => transferItem(queue, one, origin)), after }
  }

  #firstOf(shard: number): DumpPosition | undefined {
    const [kind] = KINDS
    return kind === undefined || shard >= this.#shards.length ? undefined : { shard, kind, after: false }
  }

  #afterKind({ shard, kind }: { readonly shard: number; readonly kind: Kind }): DumpPosition {
    const next = KINDS[KINDS.indexOf(kind) + 1]
    if (next !== undefined) return { shard, kind: next, after: false }
    return { shard, queue: QUEUES[0] ?? 'leaders', at: BEGINNING }
  }

  #afterQueue({ shard, queue }: { readonly shard: number; readonly queue: Queue }): DumpPosition | undefined {
    const next = QUEUES[QUEUES.indexOf(queue) + 1]
    return next === undefined ? this.#firstOf(shard + 1) : { shard, queue: next, at: BEGINNING }
  }

  #all<T>(name: Parameters<Caller['call']>[0], question: readonly unknown[]): Promise<readonly T[]> {
    return Promise.all(this.#shards.map((shard) => this.#caller.call<T>(name, question, shard)))
  }
}

type RecordRow = readonly [Buffer, Buffer, Buffer, Buffer]

interface Found<Entry, After> {
  readonly found: readonly Entry[]
  readonly after: After
}

function someOf(counts: Iterable<readonly [string, number]>): Readonly<Record<string, number>> {
  return Object.fromEntries([...counts].filter(([, count]) => count > 0))
}

/** Type boundary of cursors: only `dump` creates them. */
function placeOf(cursor: string): DumpPosition {
  return JSON.parse(cursor) as DumpPosition
}
