import {
  CLIENT_PATHS,
  type BulkReply,
  type BulkRequest,
  type ListedQuarantinedBody,
  type QuarantinedBody,
} from '@impresario/protocol'
import { given, type Connection } from './connection.ts'
import { listing, type Listing, type PageQuery } from './listing.ts'

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

/** Jobs that stand aside until somebody has looked at them. What concerns one job is at the job itself. */
export class Quarantine {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Newest first. What is too long for a list is named in `omitted_fields`; `job(id).quarantined()` has all of it. */
  list(query: QuarantineQuery = {}): Listing<ListedQuarantinedBody> {
    const { limit, cursor, owner, ...filter } = query
    return listing(this.#connection, {
      path: CLIENT_PATHS.quarantine,
      query: { ...filterOf(filter), owner, limit },
      cursor,
      read: listedOf,
    })
  }

  /** Sends jobs back into the states where they failed. Each is answered for itself; `has_more`: ask again. */
  async retry(selection: Selection): Promise<BulkReply> {
    return this.#command(CLIENT_PATHS.quarantineRetry, selection)
  }

  /** Gives jobs up: they end as failed. */
  async discard(selection: Selection): Promise<BulkReply> {
    return this.#command(CLIENT_PATHS.quarantineDiscard, selection)
  }

  async #command(path: string, selection: Selection): Promise<BulkReply> {
    const request: BulkRequest =
      'ids' in selection
        ? { ids: selection.ids }
        : { filter: filterOf(selection.filter), ...given({ limit: selection.limit }) }
    const body = JSON.stringify(request)
    const answer = await this.#connection.call(path, { method: 'POST', body, repeatable: false })
    return bulkReplyOf(answer.body)
  }
}

function filterOf({ blueprint, errorCode, olderThanMs }: QuarantineFilter): Readonly<Record<string, string | number>> {
  const olderThan = olderThanMs === undefined ? undefined : olderThanMs / 1_000
  return given({ blueprint, error_code: errorCode, older_than: olderThan })
}

/** The boundary at which a server's body is believed to be a job in quarantine. */
export function quarantinedOf(body: unknown): QuarantinedBody {
  return body as QuarantinedBody
}

/** The same of one in a list, which may lack what is long. */
function listedOf(body: unknown): ListedQuarantinedBody {
  return body as ListedQuarantinedBody
}

function bulkReplyOf(body: unknown): BulkReply {
  return body as BulkReply
}
