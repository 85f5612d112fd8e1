import { listing, type Listing, type PageQuery } from './listing.ts'
import { given } from './connection.ts'
import type { ClientTransport } from './transport.ts'
import type { DataObject } from '@impresario/protocol'
import type { Approval, ListedJob } from './views.ts'
import { fromWire } from './wire-case.ts'

export interface ApprovalQuery extends PageQuery {
  readonly blueprint?: string | undefined
  /** Only jobs of this client. Admins may name any, others themselves. */
  readonly owner?: string | undefined
}

export interface ApproveOptions {
  readonly comment?: string | undefined
  /** Which question is meant, as `approval.visit` names it; without it, whatever the job asks now. */
  readonly visit?: number | undefined
  /** What the form of the question asks for (`approval.form`). */
  readonly data?: DataObject | undefined
}

/** What jobs ask people. */
export class Approvals {
  readonly #transport: ClientTransport

  constructor(transport: ClientTransport) {
    this.#transport = transport
  }

  /** Jobs that wait for a person, newest first; `approval` of each says what it asks. */
  list({ cursor: first, ...query }: ApprovalQuery = {}): Listing<ListedJob> {
    const fetch = (cursor: string | undefined) =>
      this.#transport.listJobs(given({ ...query, status: 'waiting_for_human', cursor }))
    return listing(fetch, fromWire, first)
  }

  /** What a job asks, with links to decide it. A link decides once, without a token. */
  async get(jobId: string): Promise<Approval> {
    return fromWire(await this.#transport.readApproval(jobId))
  }

  async decide(jobId: string, decision: string, options: ApproveOptions = {}): Promise<void> {
    await this.#transport.decide(jobId, { decision, ...given({ ...options }) })
  }
}
