import { ImpresarioError } from '@impresario/protocol'
import type { Wire } from './connection.ts'
import type { FunctionName } from '../functions/library.ts'

export interface CallerParts {
  readonly wire: Wire
  readonly shards: number
  /** The clock of a test. Without it the server's clock applies, for all instances alike. */
  readonly now?: (() => number) | undefined
}

/** Calls the functions of the library. `open` → `closed` by `shut`, which is final. */
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

  /** Type boundary where a reply gets its type. Only this package's library creates it. */
  call<T>(name: FunctionName, question: readonly unknown[], shard: number): Promise<T> {
    return this.send(name, [question], shard) as Promise<T>
  }

  /** Each value is an argument; a `Buffer` is one that is already MessagePack. */
  send(name: FunctionName, values: readonly unknown[], shard: number): Promise<unknown> {
    if (this.#isShut) return Promise.reject(shut())
    return this.sendLast(name, values, shard)
  }

  /** Works after `shut` too, for calls that closing requires. */
  sendLast(name: FunctionName, values: readonly unknown[], shard: number): Promise<unknown> {
    return this.#wire.call(name, [this.#now === undefined ? '' : String(this.#now()), ...values], shard)
  }

  shut(): void {
    this.#isShut = true
  }

  mustWork(): void {
    if (this.#isShut) throw shut()
  }
}

function shut(): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', 'The storage is closed.')
}
