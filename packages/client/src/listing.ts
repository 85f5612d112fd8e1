import { HEADERS } from '@impresario/protocol'
import type { Call, Connection } from './connection.ts'

export interface Page<Item> {
  readonly items: readonly Item[]
  /** Where the next page begins; absent on the last one. */
  readonly cursor?: string
}

/** A list that the server gives in pages. Iterating fetches page after page, and stops fetching where you stop. */
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

interface Source<Item> {
  readonly path: string
  readonly query: NonNullable<Call['query']>
  /** Where the first page begins, and how the server calls it. */
  readonly cursor: string | undefined
  readonly cursorName?: string
  readonly read: (body: unknown) => Item
}

export function listing<Item>(connection: Connection, source: Source<Item>): Listing<Item> {
  const { path, query, read, cursorName = 'cursor' } = source
  const page = async (cursor: string | undefined): Promise<Page<Item>> => {
    const { body, headers } = await connection.call(path, {
      query: { ...query, [cursorName]: cursor },
      repeatable: true,
    })
    const items = Array.isArray(body) ? body.map((one: unknown) => read(one)) : []
    const next = headers.get(HEADERS.nextCursor)
    return next === null || next === '' ? { items } : { items, cursor: next }
  }
  async function* each(): AsyncGenerator<Item, void, undefined> {
    let { cursor } = source
    do {
      const found: Page<Item> = await page(cursor)
      yield* found.items
      cursor = found.cursor
    } while (cursor !== undefined)
  }
  return {
    page: () => page(source.cursor),
    all: async (max = Number.POSITIVE_INFINITY) => {
      const items: Item[] = []
      if (max <= 0) return items
      for await (const item of each()) if (items.push(item) >= max) break
      return items
    },
    [Symbol.asyncIterator]: each,
  }
}
