import { jobOfItem } from '@impresario/core'
import type { Claimed, ClaimOptions, Lease, Queue } from '@impresario/core'
import type { Connections } from './connections.ts'
import { GroupCommit } from './group-commit.ts'
import { leaseOf, storedOf } from './rows.ts'
import type { ClaimRow } from './rows.ts'

export interface ClaimsOptions {
  readonly connections: Connections
  /** Quoted. */
  readonly schema: string
  readonly session: number
  readonly groupsMax: number
}

interface Request extends ClaimOptions {
  readonly queue: Queue
  /** Claims expired items instead of due ones. */
  readonly isExpired: boolean
}

/** Requests for the same thing are merged into one claim. */
interface Joint {
  readonly request: Request
  readonly limits: number[]
}

const SIZE_MAX = 128
/** In place of the number of a claim: the row is a job. */
const JOBS = -1
/** How long a job is, as it is stored, that a claim brings along. */
const BROUGHT_MAX = 4_096

/**
 * Claims that are requested at the same time are sent together. Those for the same lanes, holder and duration are one
 * claim to the server, and its items are distributed in the order of the requests.
 */
export class Claims {
  readonly #options: ClaimsOptions
  readonly #group: GroupCommit<Request, Claimed>
  /** The lane that was served last, for claims that name no lanes. */
  readonly #lastLanes = new Map<Queue, string>()

  constructor(options: ClaimsOptions) {
    this.#options = options
    const { groupsMax } = options
    this.#group = new GroupCommit({ groupsMax, sizeMax: SIZE_MAX, send: (requests) => this.#send(requests) })
  }

  claim(queue: Queue, options: ClaimOptions): Promise<Claimed> {
    return this.#group.ask({ ...options, queue, isExpired: false })
  }

  claimExpired(queue: Queue, options: { readonly limit: number; readonly leaseMs: number }): Promise<Claimed> {
    return this.#group.ask({ ...options, queue, isExpired: true })
  }

  drain(): Promise<void> {
    return this.#group.drain()
  }

  async #send(requests: readonly Request[]): Promise<readonly Claimed[]> {
    const { connections, schema, session } = this.#options
    const joints = jointsOf(requests)
    const messages = [...joints.values()].map((joint, r) => this.#message(joint, r))
    const bringing = [...joints.values()].flatMap(({ request }, r) => (request.brings === undefined ? [] : [r]))
    const values = [JSON.stringify(messages), session, ...(bringing.length === 0 ? [] : [bringing])]
    const text = bringing.length === 0 ? `SELECT * FROM ${schema}.claim_all($1, $2)` : withJobs(schema)
    const rows = await connections.call<ClaimRow>(text, values, { isRepeatable: false })
    const found = [...joints.values()].map((joint) => ({
      joint,
      given: 0,
      leases: [] as Lease[],
      next: undefined as number | undefined,
    }))
    const jobs = jobsOf(rows)
    for (const row of rows) {
      const one = found[row.r]
      if (one === undefined) continue
      const { queue, brings } = one.joint.request
      if (row.id === null) one.next = row.next_in ?? undefined
      else {
        const lease = leaseOf(queue, row, row.id)
        one.leases.push(brings === undefined ? lease : withJob(lease, jobs))
      }
      if (row.turn !== null) this.#lastLanes.set(queue, row.turn)
    }
    const byKey = new Map([...joints.keys()].map((key, index) => [key, found[index]]))
    return requests.map((request) => {
      const one = byKey.get(keyOf(request))
      const begin = one?.given ?? 0
      if (one !== undefined) one.given += request.limit
      return { leases: one?.leases.slice(begin, begin + request.limit) ?? [], nextInMs: one?.next }
    })
  }

  #message({ request, limits }: Joint, r: number): Readonly<Record<string, unknown>> {
    const { queue, lanes, leaseMs, holder, isExpired } = request
    return {
      r,
      queue,
      ...(lanes === undefined ? { after: this.#lastLanes.get(queue) } : { lanes: [...new Set(lanes)] }),
      amount: limits.reduce((sum, limit) => sum + limit, 0),
      lease: Math.ceil(leaseMs),
      holder,
      expired: isExpired,
    }
  }
}

function jointsOf(requests: readonly Request[]): ReadonlyMap<string, Joint> {
  const joints = new Map<string, Joint>()
  for (const request of requests) {
    const key = keyOf(request)
    const joint = joints.get(key)
    if (joint === undefined) joints.set(key, { request, limits: [request.limit] })
    else joint.limits.push(request.limit)
  }
  return joints
}

function keyOf({ queue, lanes, leaseMs, holder, isExpired, brings }: Request): string {
  return JSON.stringify([queue, isExpired, leaseMs, holder ?? null, lanes ?? null, brings ?? null])
}

/**
 * The claims and, for those whose numbers are the third argument, the jobs that their items are named after, each once. The jobs
 * are those that were committed when the statement began, so that a job may be missing here, or older than its item.
 */
function withJobs(schema: string): string {
  return `WITH claimed AS MATERIALIZED (SELECT * FROM ${schema}.claim_all($1, $2))
    SELECT * FROM claimed
    UNION ALL
    SELECT ${JOBS}, j.id, r.version, NULL, NULL, r.data, NULL, NULL, NULL, NULL
    FROM (SELECT DISTINCT split_part(c.id, '.', 1) AS id FROM claimed c WHERE c.r = ANY ($3::integer[])) j
    CROSS JOIN LATERAL (
      SELECT x.version, x.data, x.expires_at FROM ${schema}.records x WHERE x.kind = 'job' AND x.id = j.id OFFSET 0
    ) r WHERE r.expires_at IS NULL AND pg_column_size(r.data) <= ${BROUGHT_MAX}`
}

function jobsOf(rows: readonly ClaimRow[]): Map<string, ClaimRow> {
  return new Map(rows.flatMap((row) => (row.r === JOBS && row.id !== null ? [[row.id, row]] : [])))
}

/** The job goes to the first of its items. */
function withJob(lease: Lease, jobs: Map<string, ClaimRow>): Lease {
  const id = jobOfItem(lease.id)
  const row = jobs.get(id)
  if (row === undefined) return lease
  jobs.delete(id)
  return { ...lease, job: storedOf<'job'>({ version: row.token, data: row.payload }) }
}
