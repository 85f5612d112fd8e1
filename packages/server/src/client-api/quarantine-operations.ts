import { shownJobId } from '@impresario/core'
import type { Clock, Job } from '@impresario/core'
import type { Commanded, Engine } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type {
  BulkReply,
  BulkRequest,
  CommandReply,
  JsonObject,
  QuarantinedBody,
  QuarantineFilter,
  RetryJobRequest,
} from '@impresario/protocol'
import type * as schemas from '@impresario/protocol/schemas'
import type { Caller } from '../http/access.ts'
import { decodeCursor, encodeCursor, JsonPage, walkJobs } from '../http/page.ts'
import type { ReloadableRegistry } from '../orchestrator/reloadable-registry.ts'
import { itemError } from './item-error.ts'
import { jobNotFound, ownerFilter, visibleJob } from './job-access.ts'
import type { WrittenPage } from './job-operations.ts'
import { listedWriter, QUARANTINED_FIELDS, quarantinedBody } from './wire-job.ts'

/* What clients may do about jobs in quarantine. */

export interface QuarantineParts {
  readonly engine: Engine
  readonly blueprints: ReloadableRegistry
  readonly clock: Clock
}

type QuarantineQuery = ReturnType<typeof schemas.quarantineQuery.parse>

export async function listQuarantine(
  { engine, clock }: QuarantineParts,
  caller: Caller,
  { limit = LIMITS.pageSizeDefault, cursor, owner, fields, ...filter }: QuarantineQuery,
): Promise<WrittenPage> {
  const query = {
    ...quarantineQuery(caller, filter, owner),
    limit,
    ...(cursor === undefined ? {} : { before: decodeCursor(cursor) }),
  }
  const write = listedWriter(fields, QUARANTINED_FIELDS)
  const page = new JsonPage()
  const next = await walkJobs(engine, {
    query,
    fits: fitsFilter(filter, clock.now()),
    take: (job) => page.add(write(quarantinedBody(job, { withStack: false }))),
  })
  return { page, next: next === undefined ? undefined : encodeCursor(next) }
}

export async function readQuarantined(
  { engine }: QuarantineParts,
  caller: Caller,
  jobId: string,
): Promise<QuarantinedBody> {
  const stored = await visibleJob(engine, caller, jobId)
  if (stored.value.status !== 'quarantined') throw notQuarantined()
  return quarantinedBody(stored, { withStack: true })
}

export async function retryJob(
  { engine, blueprints }: QuarantineParts,
  caller: Caller,
  jobId: string,
  request: RetryJobRequest,
): Promise<CommandReply> {
  const { value: job } = await visibleJob(engine, caller, jobId)
  const data = await checkedEdit(blueprints, job, request)
  return commanded(await engine.retryJob(job.id, caller.client.id, data), 'retry_accepted')
}

export async function discardJob({ engine }: QuarantineParts, caller: Caller, jobId: string): Promise<CommandReply> {
  const { value: job } = await visibleJob(engine, caller, jobId)
  return commanded(await engine.discardJob(job.id, caller.client.id), 'discard_accepted')
}

export function retryMany(parts: QuarantineParts, caller: Caller, request: BulkRequest): Promise<BulkReply> {
  const { engine } = parts
  return inBulk(parts, caller, request, async (id, by) => commanded(await engine.retryJob(id, by), 'retry_accepted'))
}

export function discardMany(parts: QuarantineParts, caller: Caller, request: BulkRequest): Promise<BulkReply> {
  const { engine } = parts
  return inBulk(parts, caller, request, async (id, by) =>
    commanded(await engine.discardJob(id, by), 'discard_accepted'),
  )
}

type Loose<T> = { readonly [K in keyof T]: T[K] | undefined }

function quarantineQuery(caller: Caller, { blueprint }: Loose<QuarantineFilter>, owner?: string) {
  return {
    ...ownerFilter(caller, owner),
    status: 'quarantined',
    ...(blueprint === undefined ? {} : { name: blueprint }),
  }
}

function fitsFilter(filter: Loose<QuarantineFilter>, now: number): (job: Job) => boolean {
  const { error_code: code, older_than: olderThan } = filter
  return (job) =>
    (code === undefined || job.error?.code === code) &&
    (olderThan === undefined || job.updatedAt <= now - olderThan * 1_000)
}

/** Other data has to pass what the first data passed. */
async function checkedEdit(
  blueprints: ReloadableRegistry,
  job: Job,
  { initial_data: initialData, state_history: stateHistory }: RetryJobRequest,
): Promise<{ initialData?: JsonObject; stateHistory?: JsonObject }> {
  if (stateHistory && Buffer.byteLength(JSON.stringify(stateHistory)) > LIMITS.contextBytesMax) {
    throw new ImpresarioError('LIMIT_EXCEEDED', `"state_history" has more than ${LIMITS.contextBytesMax} bytes.`)
  }
  const edit = stateHistory ? { stateHistory } : {}
  if (!initialData) return edit
  const blueprint = blueprints.get(job.blueprint, job.blueprintVersion) ?? blueprints.latest(job.blueprint)
  const checked = (await blueprint?.validateInput(initialData)) ?? { value: initialData }
  if ('value' in checked) return { ...edit, initialData: checked.value }
  throw new ImpresarioError(
    'INPUT_REFUSED',
    `The initial data does not fit "${job.blueprint}": ${checked.problems.join('; ')}`,
  )
}

function commanded(applied: Commanded, status: string): CommandReply {
  if (applied.type === 'applied' || applied.type === 'repeated') {
    return { status, job_id: shownJobId(applied.job.id), job_status: applied.job.status }
  }
  if (applied.type === 'ignored' && applied.reason === 'job_not_found') throw jobNotFound()
  if (applied.type === 'ignored' && applied.reason === 'state_missing') throw stateMissing(applied.job)
  throw notQuarantined()
}

function stateMissing(job: Job | undefined): ImpresarioError {
  const state = job?.onward?.state ?? job?.state
  const of = `The blueprint "${job?.blueprint}" (version ${job?.blueprintVersion})`
  const fix = 'Add the state, or load a new version with a migrate function and without the old version, then retry.'
  return new ImpresarioError('STATE_MISSING', `${of} has no state "${state}", where the job goes on. ${fix}`)
}

function notQuarantined(): ImpresarioError {
  return new ImpresarioError('NOT_WAITING', 'The job is not in quarantine.')
}

/** So many at the same time: enough to share a durable write, and not all of them at once. */
const AT_ONCE = 20

async function inBulk(
  parts: QuarantineParts,
  caller: Caller,
  request: BulkRequest,
  command: (jobId: string, by: string) => Promise<CommandReply>,
): Promise<BulkReply> {
  const { ids, hasMore } = await chosen(parts, caller, request)
  const one = async (id: string): Promise<BulkReply['results'][number]> => {
    try {
      const { value: job } = await visibleJob(parts.engine, caller, id)
      return await command(job.id, caller.client.id)
    } catch (error) {
      return { job_id: id, ...itemError(error) }
    }
  }
  const results: BulkReply['results'][number][] = []
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    results.push(...(await Promise.all(ids.slice(at, at + AT_ONCE).map(one))))
  }
  return { results, has_more: hasMore }
}

async function chosen(
  { engine, clock }: QuarantineParts,
  caller: Caller,
  { ids, filter, limit = LIMITS.batchItemsMax }: BulkRequest,
): Promise<{ readonly ids: readonly string[]; readonly hasMore: boolean }> {
  if ((ids === undefined) === (filter === undefined)) {
    throw new ImpresarioError('INVALID_REQUEST', 'Give either "ids" or "filter". An empty filter means all jobs.')
  }
  if (ids !== undefined) return { ids: [...new Set(ids)], hasMore: false }
  const query = { ...quarantineQuery(caller, filter ?? {}), limit }
  const found: string[] = []
  const next = await walkJobs(engine, {
    query,
    fits: fitsFilter(filter ?? {}, clock.now()),
    take: ({ id }) => found.push(id) > 0,
  })
  return { ids: found, hasMore: next !== undefined }
}
