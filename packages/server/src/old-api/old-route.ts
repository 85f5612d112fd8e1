import { LIMITS } from '@impresario/protocol'
import type { RouteShorthandOptions } from 'fastify'
import { z } from 'zod'
import type { RouteScope } from '../http/access.ts'

interface OldRoute {
  readonly access?: 'viewer' | 'client' | 'admin'
  readonly isNewWork?: boolean
  readonly isList?: boolean
}

/** A route of the old system. It has its own page in the reference, and is not part of our document. */
export function oldRoute(scope: RouteScope, { access = 'client', ...more }: OldRoute = {}): RouteShorthandOptions {
  return { config: { access, scope, ...more }, schema: { hide: true } }
}

/** For callers without a token: what they send is their proof, or nothing is needed. */
export function openRoute(isProvenByBody = false): RouteShorthandOptions {
  return { config: { access: 'public', ...(isProvenByBody ? { isProvenByBody } : {}) }, schema: { hide: true } }
}

/** Further back, pages are found by the cursors of our own interface. */
const OFFSET_MAX = 10_000

export const pageFields = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  offset: z.coerce.number().int().min(0).max(OFFSET_MAX).default(0),
}

/** One page of a list by its offset. */
export interface OldPage<T> {
  readonly items: readonly T[]
  readonly total: number
  readonly limit: number
  readonly offset: number
  readonly has_more: boolean
}

interface Bounds {
  readonly limit: number
  readonly offset: number
  /** How many there are, where a count is cheap. Else they are counted up to `OFFSET_MAX` and one page. */
  readonly total?: number | undefined
}

type Page<T> = { readonly items: readonly T[]; readonly next: string | undefined }

interface Source<T, W> {
  readonly read: (before: string | undefined) => Promise<Page<T>>
  /** An item as the answer has it. */
  readonly write: (item: T) => W
}

/**
 * Goes over a list by its cursors, as far as the page needs it. A page that would have more than `LIMITS.pageBytesMax` ends
 * before, with one item at least; then its `limit` is how many it has, so that `offset + limit` is where the next one begins.
 */
export async function oldPage<T, W extends object>(
  { read, write }: Source<T, W>,
  { limit, offset, total }: Bounds,
): Promise<OldPage<W>> {
  const items: W[] = []
  let [seen, bytes] = [0, 0]
  let isCut = false
  let before: string | undefined
  do {
    const page = await read(before)
    for (const item of page.items) {
      if (seen >= offset && items.length < limit && !isCut) {
        const written = write(item)
        bytes += Buffer.byteLength(JSON.stringify(written)) + 1
        isCut = items.length > 0 && bytes > LIMITS.pageBytesMax
        if (!isCut) items.push(written)
      }
      seen += 1
    }
    before = page.next
    const isEnough = total !== undefined && (isCut || seen >= offset + limit)
    if (isEnough || seen >= OFFSET_MAX + limit) break
  } while (before !== undefined)
  const count = total ?? seen
  const served = isCut ? items.length : limit
  return { items, total: count, limit: served, offset, has_more: offset + items.length < count }
}
