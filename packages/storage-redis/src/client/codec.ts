import type { Batch, Item, Put, Records } from '@impresario/core'
import { Unpackr } from 'msgpackr'
import { foldedText } from '@impresario/core'
import { MessageWriter } from './message-writer.ts'

const unpackr = new Unpackr({ useRecords: false, int64AsType: 'number' })
const single = new MessageWriter()

/**
 * The arguments of a library function: the clock of a test, or nothing; then values, each encoded as separate
 * MessagePack, or bytes, which are sent unchanged. What is bundled has one value: its question, or a `BatchMessage`.
 */
export type Arguments = readonly [now: string, ...unknown[]]

export function pack(value: unknown): Buffer {
  try {
    single.value(value)
    return single.take()
  } finally {
    single.rewind(0)
  }
}

/** Type boundary where a reply becomes a value again. Only this package's library writes it. */
export function unpack<T>(bytes: Buffer): T {
  return unpackr.unpack(bytes) as T
}

/** Type boundary where a record's body becomes its value again: `commit` stored it by kind. */
export function valueOf<K extends keyof Records>(bytes: Buffer): Records[K] {
  return unpack<Records[K]>(bytes)
}

/** Whose batch it is. */
export interface Writer {
  /** Ignores its own hints. */
  readonly origin: string
  /** Holds the leases that have no other holder. */
  readonly hands: string
}

/** What a batch over several shards needs in addition. */
export interface Sharding {
  /** The numbers of its items must be greater than this. */
  readonly floor: number
  readonly transaction: {
    readonly id: string
    /** Its owner. */
    readonly hands: string
    /** The number of its items in all shards, and the positions of this part's items among them, counted from one. */
    readonly total: number
    readonly places: readonly number[]
    /** The other shards that it writes to. */
    readonly shards: readonly number[]
  }
}

/** A batch in a bundle: the part that scripts read, value after value, and the bodies of its records and items as arguments. */
export class BatchMessage {
  /** The same for all batches of a connection. */
  readonly writer: Writer
  readonly #batch: Batch
  readonly #floor: number | false

  /** "floor": in a namespace of several shards the numbers of its items must be greater. */
  constructor(batch: Batch, writer: Writer, floor: number | false = false) {
    this.#batch = batch
    this.writer = writer
    this.#floor = floor
  }

  /** How many bodies it has. */
  get bodies(): number {
    return (this.#batch.put?.length ?? 0) + (this.#batch.enqueue?.length ?? 0)
  }

  write(text: MessageWriter, bodies: MessageWriter): void {
    const { put = NONE, drop = NONE, enqueue = NONE, remove = NONE, settle, guard } = this.#batch
    this.#writeReference(text, settle)
    text.value(guard === undefined ? false : [guard.queue, guard.id, guard.token])
    const hasRest = drop.length > 0 || remove.length > 0 || this.#floor !== false
    text.value(
      hasRest && [remove.map(({ queue, id }) => [queue, id]), drop.map(({ kind, id }) => [kind, id]), this.#floor],
    )
    text.value(put.length)
    text.value(enqueue.length)
    for (const one of put) {
      writePut(text, one)
      bodies.argument(one.value)
    }
    for (const one of enqueue) {
      writeItem(text, one)
      bodies.argument(one.payload)
    }
  }

  #writeReference(text: MessageWriter, settle: Batch['settle']): void {
    text.value(settle?.queue ?? false)
    text.value(settle?.id ?? false)
    text.value(settle?.token ?? false)
  }
}

const NONE: readonly never[] = []

function writePut(text: MessageWriter, { kind, id, version, facets, expiresMs }: Put): void {
  text.value(kind)
  text.value(id)
  text.value(version)
  text.value(facets?.owner ?? false)
  text.value(facets?.status ?? false)
  text.value(facets?.name ?? false)
  text.value(facets?.text === undefined ? false : foldedText(facets.text))
  text.value(expiresMs ?? false)
}

function writeItem(text: MessageWriter, item: Item): void {
  const { fallback, claimed } = item
  text.value(item.queue)
  text.value(item.id)
  text.value(item.lane)
  text.value(item.priority)
  text.value(item.delayMs)
  text.value(fallback?.lane ?? false)
  text.value(fallback?.afterMs ?? false)
  text.value(item.settleMs ?? false)
  text.value(item.unclaimedMs ?? false)
  text.value(item.runMs ?? false)
  text.value(claimed?.token ?? false)
  text.value(claimed?.leaseMs ?? false)
  text.value(claimed?.holder ?? false)
  // In the hands of the process that sends it, whose name is at the beginning of the bundle.
  text.value(claimed !== undefined && claimed.holder === undefined)
}

/**
 * A batch of a transaction over several shards, in the form that the library takes and stores: the part that scripts read, followed by the bodies of its records and
 * items.
 */
export function batchValues(batch: Batch, { origin, hands }: Writer, sharding: Sharding): readonly unknown[] {
  const { put = [], drop = [], enqueue = [], remove = [], settle, guard } = batch
  const due = enqueue.filter(({ delayMs, claimed }) => delayMs <= 0 && claimed === undefined)
  const hints = due.length === 0 ? false : [origin, ...due.flatMap(({ queue, lane }) => [queue, lane])]
  const description = [
    settle === undefined ? false : [settle.queue, settle.id, settle.token],
    guard === undefined ? false : [guard.queue, guard.id, guard.token],
    remove.map(({ queue, id }) => [queue, id]),
    drop.map(({ kind, id }) => [kind, id]),
    put.map((one) => putFields(one)),
    enqueue.map((item) => itemFields(item, hands)),
    hints,
    sharding.floor,
    transactionFields(sharding),
  ]
  return [description, ...put.map(({ value }) => value), ...enqueue.map(({ payload }) => payload)]
}

function transactionFields({ transaction }: Sharding): readonly unknown[] {
  const { id, hands, total, places, shards } = transaction
  return [id, hands, total, places, shards]
}

function putFields({ kind, id, version, facets = {}, expiresMs }: Put): readonly unknown[] {
  const { owner, status, name, text } = facets
  const folded = text === undefined ? false : foldedText(text)
  return [kind, id, version, owner ?? false, status ?? false, name ?? false, folded, expiresMs ?? false]
}

function itemFields(item: Item, hands: string): readonly unknown[] {
  const { queue, id, lane, priority, delayMs, fallback, settleMs, unclaimedMs, runMs, claimed } = item
  const { lane: second = false, afterMs = false } = fallback ?? {}
  const spans = [settleMs ?? false, unclaimedMs ?? false, runMs ?? false]
  const fields = [queue, id, lane, priority, delayMs, second, afterMs, ...spans]
  if (claimed === undefined) return fields
  const { token, leaseMs, holder } = claimed
  return [...fields, token, leaseMs, holder ?? false, holder === undefined && hands]
}
