import { randomUUID } from 'node:crypto'
import { parsedAddress } from './client/address.ts'
import { Connection } from './client/connection.ts'
import type { Arguments } from './client/codec.ts'
import type { Wire } from './client/connection.ts'
import type { FunctionName } from './functions/library.ts'
import { placementOf } from './shards/placement.ts'
import { RedisStorage } from './redis-storage.ts'

/**
 * Opens a storage as `openRedisStorage` does, on a connection that a test can cut, and without first cleaning up after
 * other instances.
 */
export function bareStorage(
  url: string,
  { instance, patienceMs, wireOf, now }: BareOptions,
): { readonly storage: RedisStorage; readonly connection: Connection } {
  const address = parsedAddress(url)
  const connection = new Connection({ address, waitMs: 30_000 })
  const storage = new RedisStorage({
    wire: wireOf?.(connection) ?? connection,
    shards: address.shards,
    instance,
    origin: randomUUID(),
    durability: { promise: 'unknown', doubts: [] },
    patienceMs,
    ...(now === undefined ? {} : { now }),
  })
  return { storage, connection }
}

interface BareOptions {
  readonly instance: string
  readonly patienceMs: number
  readonly wireOf?: (wire: Wire) => Wire
  readonly now?: () => number
}

/**
 * A connection that is cut at its n-th call, counted from one: before the call is sent, or after it ran and before the
 * reply.
 */
export class CutWire implements Wire {
  /** The calls made until then. */
  readonly names: FunctionName[] = []
  readonly #wire: Wire
  readonly #at: number
  readonly #when: 'before' | 'after'
  #isCut = false

  constructor(wire: Wire, at: number, when: 'before' | 'after') {
    this.#wire = wire
    this.#at = at
    this.#when = when
  }

  async call(name: FunctionName, args: Arguments, shard: number): Promise<unknown> {
    if (this.#isCut) throw new Error('The wire is cut')
    this.names.push(name)
    const isLast = this.names.length === this.#at
    if (isLast) this.#isCut = true
    if (isLast && this.#when === 'before') throw new Error('The wire is cut')
    const reply = await this.#wire.call(name, args, shard)
    if (isLast) throw new Error('The wire is cut')
    return reply
  }

  listen(...given: Parameters<Wire['listen']>): void {
    this.#wire.listen(...given)
  }

  close(): Promise<void> {
    return this.#wire.close()
  }
}

/** The first name with this prefix that belongs to a shard. */
export function nameIn(shard: number, shards: number, beginning: string): string {
  const placement = placementOf(shards)
  for (let number = 0; ; number += 1) {
    const name = `${beginning}${number}`
    // Items and records of jobs follow the same rule.
    if (placement.ofItem('turns', name) === shard) return name
  }
}
