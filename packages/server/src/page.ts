import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Job, ListQuery, Stored } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { HEADERS, ImpresarioError, LIMITS } from '@impresario/protocol'

type ListedJob = Stored<Job> & { readonly id: string }

/** A place in a list, as clients get it: they give it back as it is and read nothing out of it. */
export function encodeCursor(id: string): string {
  return Buffer.from(`after:${id}`).toString('base64url')
}

const PLACE = /^after:(?<id>[\w.:-]{1,800})$/

export function decodeCursor(cursor: string): string {
  const id = PLACE.exec(Buffer.from(cursor, 'base64url').toString())?.groups?.['id']
  if (id !== undefined && encodeCursor(id) === cursor) return id
  throw new ImpresarioError(
    'INVALID_REQUEST',
    '"cursor" is not one of ours. Give back what stood in the header X-Next-Cursor, or leave it out to begin anew.',
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

export interface Scan {
  readonly found: readonly ListedJob[]
  /** The last record that was looked at, when there may be more behind it. */
  readonly lastId: string | undefined
}

/**
 * A page by a rule that the storage cannot look up. It looks through so many records at most: a page may come short of
 * its limit, and then says where to go on.
 */
export async function scanJobs(
  engine: Engine,
  query: ListQuery,
  fits: (job: Job) => boolean,
  recordsMax: number = LIMITS.scanRecordsMax,
): Promise<Scan> {
  const found: ListedJob[] = []
  let { before } = query
  let looked = 0
  while (looked < recordsMax) {
    const limit = Math.min(LIMITS.pageSizeMax, recordsMax - looked)
    const records = await engine.listJobs({ ...query, limit, ...(before === undefined ? {} : { before }) })
    for (const [index, record] of records.entries()) {
      before = record.id
      if (!fits(record.value)) continue
      found.push(record)
      if (found.length < query.limit) continue
      const isLast = records.length < limit && index === records.length - 1
      return { found, lastId: isLast ? undefined : before }
    }
    if (records.length < limit) return { found, lastId: undefined }
    looked += records.length
  }
  return { found, lastId: before }
}
