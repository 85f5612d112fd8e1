import { foldedText } from '@impresario/core'
import type { Kind, ListQuery } from '@impresario/core'
import { bytesOf, textOf, triplesOf } from '../client/replies.ts'

/** Records that one list call scans: about a millisecond of the server. */
const PAGE_MAX = 500

interface Row {
  readonly id: string
  readonly version: number
  readonly body: Buffer
}

type Ask = (question: readonly unknown[]) => Promise<readonly [Buffer, ...(Buffer | number)[]]>

/** The records of one shard that match a query, page by page, greatest id first. */
class Pages {
  readonly #ask: Ask
  readonly #kind: Kind
  readonly #query: ListQuery
  #rows: readonly Row[] = []
  #next = 0
  #before: string | false
  #isOver = false
  /** Records that may still be looked through in vain. */
  #looksLeft: number

  constructor(ask: Ask, kind: Kind, query: ListQuery, looksMax: number) {
    this.#ask = ask
    this.#kind = kind
    this.#query = query
    this.#before = query.before ?? false
    this.#looksLeft = looksMax
  }

  get first(): Row | undefined {
    return this.#rows[this.#next]
  }

  /** Whether there may be more rows than those already loaded. */
  get isOver(): boolean {
    return this.#isOver && this.first === undefined
  }

  /** Where this shard has stopped looking, if it did before its end. From there on nothing is missing. */
  get stoppedAt(): string | undefined {
    if (this.first !== undefined || this.#isOver || this.#looksLeft > 0) return undefined
    return this.#before === false ? undefined : this.#before
  }

  skip(): void {
    this.#next += 1
  }

  /** Loads the next page if no row is left, unless there are no more, or enough has been looked through. */
  async fill(size: number): Promise<void> {
    const { owner = false, name = false, from = false, search = '' } = this.#query
    const statuses = statusesOf(this.#query)
    const needle = search === '' ? false : foldedText(search)
    const isFiltered = owner !== false || name !== false || statuses !== false || needle !== false
    const wanted = Math.min(size, PAGE_MAX)
    const bytes = this.#query.bytesMax ?? false
    while (this.first === undefined && !this.#isOver && this.#looksLeft > 0) {
      const most = isFiltered ? Math.min(PAGE_MAX, this.#looksLeft) : wanted
      const question = [this.#kind, owner, statuses, name, this.#before, from, needle, wanted, most, bytes]
      const [cursor, ...flat] = await this.#ask(question)
      this.#rows = triplesOf(flat).map(([id, version, body]) => ({
        id: textOf(id),
        version: Number(version),
        body: bytesOf(body),
      }))
      this.#next = 0
      const next = cursor.toString()
      if (next !== '') {
        this.#before = next
        if (isFiltered) this.#looksLeft -= Math.max(0, most - this.#rows.length)
      } else if (this.#rows.length === wanted) this.#before = this.#rows.at(-1)?.id ?? false
      else this.#isOver = true
    }
  }
}

export interface Page {
  readonly rows: readonly Row[]
  /** Where to continue, if the page ended by its bytes or its looks. */
  readonly next: string | undefined
}

/** The records of all shards that match a query, greatest id first in byte order, as every shard sorts them. */
export async function listed(asks: readonly Ask[], kind: Kind, query: ListQuery): Promise<Page> {
  const { limit, bytesMax = Number.POSITIVE_INFINITY, looksMax = Number.POSITIVE_INFINITY } = query
  const looks = Math.max(1, Math.ceil(looksMax / asks.length))
  const all = asks.map((ask) => new Pages(ask, kind, query, looks))
  // Each of several shards has about its share of the results. A shard that has more is queried again.
  const size = all.length === 1 ? limit : Math.ceil((1.5 * limit) / all.length) + 1
  const rows: Row[] = []
  let bytes = 0
  if (limit <= 0) return { rows, next: undefined }
  await Promise.all(all.map((pages) => pages.fill(size)))
  while (rows.length < limit) {
    let best: { readonly pages: Pages; readonly row: Row } | undefined
    for (const pages of all) {
      const row = pages.first
      if (row !== undefined && (best === undefined || isGreater(row.id, best.row.id))) best = { pages, row }
    }
    // What sorts before the place where a shard has stopped may have something of that shard in front of it.
    const stop = greatest(all.map(({ stoppedAt }) => stoppedAt))
    if (stop !== undefined && (best === undefined || isGreater(stop, best.row.id))) return { rows, next: stop }
    if (best === undefined) break
    rows.push(best.row)
    best.pages.skip()
    bytes += best.row.body.length
    if (rows.length >= limit) break
    if (bytes >= bytesMax) return { rows, next: all.every(({ isOver }) => isOver) ? undefined : best.row.id }
    await best.pages.fill(Math.min(size, limit - rows.length))
  }
  return { rows, next: undefined }
}

function greatest(ids: readonly (string | undefined)[]): string | undefined {
  return ids.reduce((a, b) => (a === undefined || (b !== undefined && isGreater(b, a)) ? b : a), undefined)
}

/** Not with `>`, which compares the halves of surrogate pairs. */
function isGreater(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) > 0
}

function statusesOf({ status, statuses }: ListQuery): readonly string[] | false {
  if (status === undefined) return statuses ?? false
  return statuses === undefined || statuses.includes(status) ? [status] : []
}
