import type { BulkRequest } from '@impresario/protocol'
import { given } from './connection.ts'
import { listing, type Listing, type PageQuery } from './listing.ts'
import type { ClientTransport } from './transport.ts'
import type { BulkReply, ListedQuarantinedJob } from './views.ts'
import { fromWire } from './wire-case.ts'

export interface QuarantineFilter {
  readonly blueprint?: string | undefined
  readonly errorCode?: string | undefined
  /** In quarantine for so long at least. */
  readonly olderThanMs?: number | undefined
}

export interface QuarantineQuery extends QuarantineFilter, PageQuery {
  /** Only jobs of this client. Admins may name any, others themselves. */
  readonly owner?: string | undefined
}

/** These jobs, or all that fit a filter. An empty filter fits all, which has to be said: there is no default. */
export type Selection =
  | { readonly ids: readonly string[] }
  /** With a limit, so many at most. */
  | { readonly filter: QuarantineFilter; readonly limit?: number | undefined }

/** Jobs that stand aside until a person has looked at them. What concerns one job is at the job itself. */
export class Quarantine {
  readonly #transport: ClientTransport

  constructor(transport: ClientTransport) {
    this.#transport = transport
  }

  /** Newest first. What is too long for a list is named in `omittedFields`; `job(id).quarantined()` has all of it. */
  list({ limit, cursor: first, owner, ...filter }: QuarantineQuery = {}): Listing<ListedQuarantinedJob> {
    const query = given({ ...filterOf(filter), owner, limit })
    return listing((cursor) => this.#transport.listQuarantine({ ...query, cursor }), fromWire, first)
  }

  /** Sends jobs back into the states where they failed. Each is answered for itself; `hasMore`: ask again. */
  async retry(selection: Selection): Promise<BulkReply> {
    return fromWire(await this.#transport.retryMany(requestOf(selection)))
  }

  /** Gives jobs up: they end as failed. */
  async discard(selection: Selection): Promise<BulkReply> {
    return fromWire(await this.#transport.discardMany(requestOf(selection)))
  }
}

function requestOf(selection: Selection): BulkRequest {
  if ('ids' in selection) return { ids: selection.ids }
  return { filter: filterOf(selection.filter), ...given({ limit: selection.limit }) }
}

function filterOf({ blueprint, errorCode, olderThanMs }: QuarantineFilter): Readonly<Record<string, string | number>> {
  const olderThan = olderThanMs === undefined ? undefined : olderThanMs / 1_000
  return given({ blueprint, error_code: errorCode, older_than: olderThan })
}
