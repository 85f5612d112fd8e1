import type { ItemView, Kind, Queue, Records, Stored } from '@impresario/core'
import type { Connections } from './connections.ts'
import { GroupCommit } from './group-commit.ts'
import { storedOf, viewOf } from './rows.ts'
import type { ItemRow, RecordRow } from './rows.ts'

export interface ReadsOptions {
  readonly connections: Connections
  /** Quoted. */
  readonly schema: string
}

interface RecordKey {
  readonly kind: Kind
  readonly id: string
}

interface ItemKeys {
  readonly queue: Queue
  readonly ids: readonly string[]
}

type Numbered = { readonly n: number }
type RecordFound = Pick<RecordRow, 'version' | 'data'>

const SIZE_MAX = 256
const GROUPS_MAX = 2

/**
 * Reads that are requested at the same time are sent together. A read is sent after it was requested, so that it sees
 * all earlier commits.
 */
export class Reads {
  readonly #options: ReadsOptions
  readonly #records: GroupCommit<RecordKey, RecordFound | null>
  readonly #items: GroupCommit<ItemKeys, readonly (ItemView | undefined)[]>

  constructor(options: ReadsOptions) {
    this.#options = options
    const sizes = { groupsMax: GROUPS_MAX, sizeMax: SIZE_MAX }
    this.#records = new GroupCommit({ ...sizes, send: (keys) => this.#readAll(keys) })
    this.#items = new GroupCommit({ ...sizes, send: (keys) => this.#peekAll(keys) })
  }

  async read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    const row = await this.#records.ask({ kind, id })
    return row === null ? undefined : storedOf<K>(row)
  }

  peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    return this.#items.ask({ queue, ids })
  }

  async drain(): Promise<void> {
    await Promise.all([this.#records.drain(), this.#items.drain()])
  }

  async #readAll(keys: readonly RecordKey[]): Promise<readonly (RecordFound | null)[]> {
    const { connections, schema } = this.#options
    const values = [keys.map(({ kind }) => kind), keys.map(({ id }) => id)]
    const text = `SELECT n, version, data FROM ${schema}.read_all($1, $2)`
    const rows = await connections.call<RecordFound & Numbered>(text, values, { isRepeatable: true })
    const byNumber = new Map(rows.map((row) => [row.n, row]))
    return keys.map((_, index) => byNumber.get(index + 1) ?? null)
  }

  async #peekAll(requests: readonly ItemKeys[]): Promise<readonly (readonly (ItemView | undefined)[])[]> {
    const { connections, schema } = this.#options
    const keys = requests.flatMap(({ queue, ids }) => ids.map((id) => ({ queue, id })))
    const values = [keys.map(({ queue }) => queue), keys.map(({ id }) => id)]
    const text = `SELECT * FROM ${schema}.peek_all($1, $2)`
    const rows = await connections.call<ItemRow & Numbered>(text, values, { isRepeatable: true })
    const byNumber = new Map(rows.map((row) => [row.n, row]))
    let number = 0
    return requests.map(({ queue, ids }) =>
      ids.map(() => {
        number += 1
        const row = byNumber.get(number)
        return row === undefined ? undefined : viewOf(queue, row)
      }),
    )
  }
}
