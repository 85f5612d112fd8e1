/** Deletions that are not worth a new map. */
const GONE_MIN = 8
/** A larger map stays as it is: its copy would hold up the process. */
const SIZE_MAX = 65_536

/**
 * A map of what comes and goes: most entries are deleted soon after they were set.
 *
 * A `Map` of V8 that grows, shrinks or is full of deleted entries moves into a new table, and the old table points to the new one. As
 * soon as one of these tables has reached the old generation, each later one is kept until the next large collection, with all
 * that was in it: a fifth of what a busy engine allocated became old in this way, and a tenth of its CPU time went into that. Here
 * the map itself is replaced before the chain gets long, when more was deleted from it than is left.
 *
 * Whoever goes through it may delete meanwhile, but may then still meet what has been deleted, and misses what is added.
 */
export class PassingMap<K, V> implements ReadonlyMap<K, V> {
  #entries = new Map<K, V>()
  #gone = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  set(key: K, value: V): this {
    this.#entries.set(key, value)
    return this
  }

  delete(key: K): boolean {
    if (!this.#entries.delete(key)) return false
    this.#gone += 1
    const { size } = this.#entries
    if (this.#gone > size + GONE_MIN && size <= SIZE_MAX) this.#renew(new Map(this.#entries))
    return true
  }

  clear(): void {
    if (this.#entries.size > 0) this.#renew(new Map())
  }

  keys(): MapIterator<K> {
    return this.#entries.keys()
  }

  values(): MapIterator<V> {
    return this.#entries.values()
  }

  entries(): MapIterator<[K, V]> {
    return this.#entries.entries()
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#entries.entries()
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.#entries) visit(value, key, this)
  }

  #renew(entries: Map<K, V>): void {
    this.#entries = entries
    this.#gone = 0
  }
}
