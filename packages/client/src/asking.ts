import { given } from './connection.ts'
import type { WireQuery } from './file-transport.ts'
import { listing } from './listing.ts'
import type { Listing } from './listing.ts'
import type { RequestTransport, WireRequest } from './request-transport.ts'
import { fromWire } from './wire-case.ts'
import type { CamelCased } from './wire-case.ts'

/** The answer for programs. The caller names what the route describes. */
export async function ask<Wire>(transport: RequestTransport, request: WireRequest): Promise<CamelCased<Wire>> {
  return fromWire((await transport.ask(request)).body as Wire)
}

/** A list in pages. */
export function askAll<Wire>(
  transport: RequestTransport,
  path: readonly string[],
  query: WireQuery,
  first?: string,
): Listing<CamelCased<Wire>> {
  return listing(
    async (cursor) => {
      const { body, next } = await transport.ask({ method: 'GET', path, query: given({ ...query, cursor }) })
      const items = body as readonly Wire[]
      return next === undefined ? { items } : { items, next }
    },
    fromWire,
    first,
  )
}
