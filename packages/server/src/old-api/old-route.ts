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

/** Goes over a list by its cursors, as far as the page needs it. */
export async function oldPage<T>(
  read: (before: string | undefined) => Promise<Page<T>>,
  { limit, offset, total }: Bounds,
): Promise<OldPage<T>> {
  const items: T[] = []
  let seen = 0
  let before: string | undefined
  do {
    const page = await read(before)
    for (const item of page.items) {
      if (seen >= offset && items.length < limit) items.push(item)
      seen += 1
    }
    before = page.next
    const isEnough = total !== undefined && seen >= offset + limit
    if (isEnough || seen >= OFFSET_MAX + limit) break
  } while (before !== undefined)
  const count = total ?? seen
  return { items, total: count, limit, offset, has_more: offset + items.length < count }
}
