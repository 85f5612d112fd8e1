import type { FastifyReply, FastifyRequest } from 'fastify'
import { setImmediate as nextTick } from 'node:timers/promises'
import { nextPage } from '@impresario/core'
import type { Job, Listed, ListQuery } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { HEADERS, ImpresarioError, LIMITS } from '@impresario/protocol'

type ListedJob = Listed<'job'>

/** A place in a list, as clients get it: they give it back as it is and read nothing out of it. */
export function encodeCursor(id: string): string {
  return Buffer.from(`after:${id}`).toString('base64url')
}

const PLACE = /^after:(?<id>[\w.:-]{1,800})$/
/** Names that others choose, such as those of workers and skills. */
export const ANY_NAME = /^after:(?<id>[\s\S]{1,2000})$/

export function decodeCursor(cursor: string, place: RegExp = PLACE): string {
  const id = place.exec(Buffer.from(cursor, 'base64url').toString())?.groups?.['id']
  if (id !== undefined && encodeCursor(id) === cursor) return id
  throw new ImpresarioError(
    'INVALID_REQUEST',
    '"cursor" is invalid. Send the value of the X-Next-Cursor header, or omit it to start from the beginning.',
  )
}

/** Says where the next page begins: in a header of our own, and as a link by RFC 8288. */
export function linkNextPage(request: FastifyRequest, reply: FastifyReply, name: string, cursor: string): void {
  const [path = '', query = ''] = request.originalUrl.split('?', 2)
  const next = new URLSearchParams(query)
  next.delete('offset')
  next.set(name, cursor)
  void reply.header(HEADERS.nextCursor, cursor).header('link', `<${path}?${next.toString()}>; rel="next"`)
}

/** A page as it is written, record by record, until it is as long as it may be. It takes one record in any case. */
export class JsonPage {
  readonly #bytesMax: number
  readonly #texts: string[] = []
  #bytes = 0

  constructor(bytesMax: number = LIMITS.pageBytesMax) {
    this.#bytesMax = bytesMax
  }

  get length(): number {
    return this.#texts.length
  }

  /** False when it does not take this one any more. */
  add(text: string): boolean {
    const bytes = Buffer.byteLength(text) + 1
    if (this.#texts.length > 0 && this.#bytes + bytes > this.#bytesMax) return false
    this.#texts.push(text)
    this.#bytes += bytes
    return true
  }

  /** Adds a property to the object at this place. For what is short: it does not count. */
  extend(index: number, property: string): void {
    const text = this.#texts[index]
    if (text?.endsWith('}') !== true) return
    this.#texts[index] = `${text.slice(0, -1)}${text === '{}' ? '' : ','}${property}}`
  }

  /** As a list of what was added; as an object where that were its properties. */
  text(shape: 'list' | 'object' = 'list'): string {
    const text = this.#texts.join(',')
    return shape === 'list' ? `[${text}]` : `{${text}}`
  }

  send(reply: FastifyReply, shape: 'list' | 'object' = 'list'): FastifyReply {
    return reply.header('content-type', 'application/json; charset=utf-8').send(this.text(shape))
  }
}

export interface Walk {
  /** What the storage is asked for; its limit is that of the page. */
  readonly query: ListQuery
  /** Records at the beginning that are looked at and not shown. */
  readonly skip?: number
  /** A rule that the storage cannot look up. */
  readonly fits?: (job: Job) => boolean
  /** False when the page takes no more; then it ends before this record. */
  readonly take: (record: ListedJob) => boolean
}

/** Pieces that are read for one page. */
const PIECES_MAX = LIMITS.pageReadBytesMax / LIMITS.pagePieceBytes
/** Pieces of one page in which nothing fits: 16,000 records are some 30 ms on a file or PostgreSQL, and 80 ms on Redis. */
const VAIN_PIECES_MAX = 8

/**
 * Reads jobs until the page is full, in pieces, so that neither much is in memory at once nor other requests wait
 * for long. It looks through a bounded number of records and bytes: a page may come short of its limit, and then says where
 * to go on. Gives the place where the next page begins; `undefined` when there is none.
 */
export async function walkJobs(engine: Engine, walk: Walk): Promise<string | undefined> {
  const { query, fits = () => true, take } = walk
  let skip = walk.skip ?? 0
  let left = query.limit
  let { before } = query
  const isFirst = before === undefined
  let total: number | undefined
  let seen = 0
  let vain = 0
  for (let piece = 0; piece < PIECES_MAX; piece += 1) {
    if (piece > 0) await nextTick()
    // One more than is needed, to know whether there is a next page.
    const limit = walk.fits === undefined ? skip + left + 1 : LIMITS.pageSizeMax
    const bounds = { limit, bytesMax: LIMITS.pagePieceBytes, looksMax: LIMITS.pagePieceLooks }
    const records = await engine.listJobs({ ...query, ...bounds, ...(before === undefined ? {} : { before }) })
    for (const record of records) {
      if (fits(record.value)) {
        if (skip > 0) skip -= 1
        else if (left === 0 || !take(record)) return before
        else left -= 1
      }
      before = record.id
    }
    const next = nextPage(records, limit)
    if (next === undefined) return undefined
    before = next
    // A filter that leaves out nearly all: once all that fits is found, the rest need not be looked through.
    if (piece === 0) total = await countOf(engine, query)
    seen += records.length
    if (total === 0 || (isFirst && total !== undefined && seen >= total)) return undefined
    if (records.length > 0) continue
    vain += 1
    if (vain === VAIN_PIECES_MAX) break
  }
  return before
}

/** How many jobs have what the query asks for, at any time; `undefined` where that is not counted. */
export async function countOf(
  engine: Engine,
  { owner, name, search, status, statuses }: ListQuery,
): Promise<number | undefined> {
  if (search !== undefined && search !== '') return undefined
  const counts = await engine.counts('job', {
    ...(owner === undefined ? {} : { owner }),
    ...(name === undefined ? {} : { name }),
  })
  let sum = 0
  for (const [one, jobs] of Object.entries(counts)) {
    const isWanted = (status === undefined || one === status) && (statuses === undefined || statuses.includes(one))
    if (isWanted) sum += jobs
  }
  return sum
}
