import type { Facets, Kind } from '@impresario/core'
import type { CountRow } from './journal.ts'

/** Records of one kind that share owner, name and status. */
interface Cell {
  readonly owner: string | undefined
  readonly name: string | undefined
  readonly status: string
  count: number
}

type Names = Map<string | undefined, Map<string, Cell>>

/** How many records of a kind there are, by owner, name and status. Records without a status are not counted. */
export class RecordCounts {
  readonly #kind: Kind
  readonly #isJournaled: boolean
  readonly #owners = new Map<string | undefined, Names>()
  /** Cells for which the journal has another number. An empty one stays until the journal has it too. */
  readonly #changed = new Set<Cell>()

  constructor(kind: Kind, isJournaled: boolean) {
    this.#kind = kind
    this.#isJournaled = isJournaled
  }

  /** Loads the counts that the journal has. */
  load({ owner, name, status, count }: CountRow): void {
    this.#cellOf(owner ?? undefined, name ?? undefined, status).count += count
  }

  /** Moves a record from the old facets to the new ones; `undefined` stands for a record that does not exist. */
  move(old: Facets | undefined, next: Facets | undefined): void {
    if (old?.status === next?.status && old?.owner === next?.owner && old?.name === next?.name) return
    if (old?.status !== undefined) this.#add(old, old.status, -1)
    if (next?.status !== undefined) this.#add(next, next.status, 1)
  }

  counts({ owner, name }: Pick<Facets, 'owner' | 'name'>): Readonly<Record<string, number>> {
    const found = new Map<string, number>()
    for (const names of owner === undefined ? this.#owners.values() : present(this.#owners.get(owner))) {
      for (const cells of name === undefined ? names.values() : present(names.get(name))) {
        for (const { status, count } of cells.values()) {
          if (count > 0) found.set(status, (found.get(status) ?? 0) + count)
        }
      }
    }
    return Object.fromEntries(found)
  }

  /** Hands over the numbers that have changed. */
  take(rows: CountRow[]): void {
    for (const cell of this.#changed) {
      const { owner = null, name = null, status, count } = cell
      rows.push({ kind: this.#kind, owner, name, status, count })
      if (count === 0) this.#remove(cell)
    }
    this.#changed.clear()
  }

  #add({ owner, name }: Facets, status: string, by: 1 | -1): void {
    const cell = this.#cellOf(owner, name, status)
    cell.count += by
    if (this.#isJournaled) this.#changed.add(cell)
    else if (cell.count === 0) this.#remove(cell)
  }

  #cellOf(owner: string | undefined, name: string | undefined, status: string): Cell {
    const cells = getOr(getOr<string | undefined, Names>(this.#owners, owner, newMap), name, newMap<string, Cell>)
    return getOr(cells, status, () => ({ owner, name, status, count: 0 }))
  }

  #remove({ owner, name, status }: Cell): void {
    const names = this.#owners.get(owner)
    const cells = names?.get(name)
    if (names === undefined || cells === undefined) return
    cells.delete(status)
    if (cells.size === 0) names.delete(name)
    if (names.size === 0) this.#owners.delete(owner)
  }
}

function newMap<K, V>(): Map<K, V> {
  return new Map()
}

function present<T>(value: T | undefined): readonly T[] {
  return value === undefined ? [] : [value]
}

function getOr<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}
