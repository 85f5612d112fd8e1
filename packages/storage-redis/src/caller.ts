import { ImpresarioError } from '@impresario/protocol'
import { pack } from './codec.ts'
import type { Wire } from './connection.ts'
import type { FunctionName } from './library.ts'

export interface CallerParts {
  readonly wire: Wire
  readonly shards: number
  /** The time of a test. Without it the server's own clock counts, for all instances alike. */
  readonly now?: (() => number) | undefined
}

/** Calls the functions of the library. `open` → `closed` by `shut`, for good. */
export class Caller {
  readonly shards: number
  readonly #wire: Wire
  readonly #now: (() => number) | undefined
  #isShut = false

  constructor({ wire, shards, now }: CallerParts) {
    this.#wire = wire
    this.shards = shards
    this.#now = now
  }

  /** The boundary where a reply gets its shape: only the library of this package makes it. */
  async call<T>(name: FunctionName, question: readonly unknown[], shard: number): Promise<T> {
    return (await this.send(name, [pack(question)], shard)) as T
  }

  async send(name: FunctionName, args: readonly Buffer[], shard: number): Promise<unknown> {
    this.mustWork()
    return this.sendLast(name, args, shard)
  }

  /** Also when it is shut: for what has to be done then. */
  sendLast(name: FunctionName, args: readonly Buffer[], shard: number): Promise<unknown> {
    return this.#wire.call(name, [this.#now === undefined ? '' : String(this.#now()), ...args], shard)
  }

  shut(): void {
    this.#isShut = true
  }

  mustWork(): void {
    if (this.#isShut) throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The storage is closed.')
  }
}
