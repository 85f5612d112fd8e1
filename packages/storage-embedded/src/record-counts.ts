import { isCountedByName } from '@impresario/core'
import type { Facets, Kind } from '@impresario/core'
import type { CountRow } from './journal.ts'

/** Records of one kind that share owner, name and status. */
interface Cell {
  readonly owner: string | undefined
  readonly name: string | undefined
  readonly status: string
  count: number
}

/** Numbers by status. */
class Totals {
  readonly #counts = new Map<string, number>()

  add(status: string, by: number): void {
    const count = (this.#counts.get(status) ?? 0) + by
    if (count === 0) this.#counts.delete(status)
    else this.#counts.set(status, count)
  }

  statuses(): Iterable<string> {
    return this.#counts.keys()
  }

  toObject(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].filter(([, count]) => count > 0))
  }
}

/** What there is of one owner. There may be a cell for each of many thousand names, so all of them share one map. */
class OwnerCells {
  readonly totals = new Totals()
  readonly #cells = new Map<string, Cell>()

  get size(): number {
    return this.#cells.size
  }

  cell(owner: string | undefined, name: string | undefined, status: string): Cell {
    const key = keyOf(name, status)
    const known = this.#cells.get(key)
    if (known !== undefined) return known
    const made: Cell = { owner, name, status, count: 0 }
    this.#cells.set(key, made)
    return made
  }

  count(name: string, status: string): number {
    return this.#cells.get(keyOf(name, status))?.count ?? 0
  }

  remove({ name, status }: Cell): void {
    this.#cells.delete(keyOf(name, status))
  }
}

/**
 * How many records of a kind there are, by owner, name and status. Records without a status are not counted. Names are told
 * apart only where `isCountedByName` says so: with the audit log, a number for each automation and for each event would
 * stay in memory as long as their entries stay on disk.
 */
export class RecordCounts {
  readonly #kind: Kind
  readonly #isJournaled: boolean
  readonly #owners = new Map<string | undefined, OwnerCells>()
  readonly #totals = new Totals()
  /** Cells for which the journal has another number. An empty one stays until the journal has it too. */
  #changed = new Set<Cell>()

  constructor(kind: Kind, isJournaled: boolean) {
    this.#kind = kind
    this.#isJournaled = isJournaled
  }

  /** Loads the counts that the journal has. */
  load({ owner, name, status, count }: CountRow): void {
    this.#add(owner ?? undefined, name ?? undefined, status, count)
  }

  /** Moves a record from the old facets to the new ones; `undefined` stands for a record that does not exist. */
  move(old: Facets | undefined, next: Facets | undefined): void {
    if (old?.status === next?.status && old?.owner === next?.owner && old?.name === next?.name) return
    if (old?.status !== undefined) this.#step(old, old.status, -1)
    if (next?.status !== undefined) this.#step(next, next.status, 1)
  }

  counts({ owner, name }: Pick<Facets, 'owner' | 'name'>): Readonly<Record<string, number>> {
    if (name !== undefined) return this.#countsOf(name, owner)
    return (owner === undefined ? this.#totals : this.#owners.get(owner)?.totals)?.toObject() ?? {}
  }

  /** Hands over the numbers that have changed. */
  take(rows: CountRow[]): void {
    for (const cell of this.#changed) {
      const { owner = null, name = null, status, count } = cell
      rows.push({ kind: this.#kind, owner, name, status, count })
      if (count === 0) this.#remove(cell)
    }
    if (this.#changed.size > 0) this.#changed = new Set()
  }

  #countsOf(name: string, owner: string | undefined): Readonly<Record<string, number>> {
    if (!isCountedByName(this.#kind)) throw new Error(`Records of the kind "${this.#kind}" are not counted by name.`)
    const found = new Totals()
    for (const cells of owner === undefined ? this.#owners.values() : present(this.#owners.get(owner))) {
      for (const status of cells.totals.statuses()) found.add(status, cells.count(name, status))
    }
    return found.toObject()
  }

  #step({ owner, name }: Facets, status: string, by: 1 | -1): void {
    const cell = this.#add(owner, isCountedByName(this.#kind) ? name : undefined, status, by)
    if (this.#isJournaled) this.#changed.add(cell)
    else if (cell.count === 0) this.#remove(cell)
  }

  #add(owner: string | undefined, name: string | undefined, status: string, by: number): Cell {
    let cells = this.#owners.get(owner)
    if (cells === undefined) {
      cells = new OwnerCells()
      this.#owners.set(owner, cells)
    }
    const cell = cells.cell(owner, name, status)
    cell.count += by
    cells.totals.add(status, by)
    this.#totals.add(status, by)
    return cell
  }

  #remove(cell: Cell): void {
    const cells = this.#owners.get(cell.owner)
    if (cells === undefined) return
    cells.remove(cell)
    if (cells.size === 0) this.#owners.delete(cell.owner)
  }
}

/** Statuses are words of ours, so nothing but the name can contain the separator. */
function keyOf(name: string | undefined, status: string): string {
  return name === undefined ? status : `${status}\0${name}`
}

function present<T>(value: T | undefined): readonly T[] {
  return value === undefined ? [] : [value]
}
