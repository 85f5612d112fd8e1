import type { WirePage } from './transport.ts'

export interface Page<Item> {
  readonly items: readonly Item[]
  /** Where the next page begins; absent on the last one. */
  readonly cursor?: string
}

/** A list that comes in pages. Iterating fetches page after page, and stops fetching where you stop. */
export interface Listing<Item> extends AsyncIterable<Item> {
  /** One page only. */
  page(): Promise<Page<Item>>
  /** Everything, or the first `max` of it. */
  all(max?: number): Promise<readonly Item[]>
}

export interface PageQuery {
  /** Items per page. */
  readonly limit?: number | undefined
  /** From the page before. */
  readonly cursor?: string | undefined
}

/**
 * A list that is fetched when it is asked for. `first`: where the first page begins; `read` makes of an item on the wire
 * what programs get.
 */
export function listing<Wire, Item>(
  fetch: (cursor: string | undefined) => Promise<WirePage<Wire>>,
  read: (item: Wire) => Item,
  first?: string,
): Listing<Item> {
  const page = async (cursor: string | undefined): Promise<Page<Item>> => {
    const { items, next } = await fetch(cursor)
    const found = items.map((item) => read(item))
    return next === undefined ? { items: found } : { items: found, cursor: next }
  }
  async function* each(): AsyncGenerator<Item, void, undefined> {
    let cursor = first
    do {
      const found: Page<Item> = await page(cursor)
      yield* found.items
      cursor = found.cursor
    } while (cursor !== undefined)
  }
  return {
    page: () => page(first),
    all: async (max = Number.POSITIVE_INFINITY) => {
      const items: Item[] = []
      if (max <= 0) return items
      for await (const item of each()) if (items.push(item) >= max) break
      return items
    },
    [Symbol.asyncIterator]: each,
  }
}
