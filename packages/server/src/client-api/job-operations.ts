import { childJobId, shownJobId } from '@impresario/core'
import type { Job, Stored } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { CancelJobReply, CancelJobRequest, JobBody, JsonObject } from '@impresario/protocol'
import type * as schemas from '@impresario/protocol/schemas'
import type { AutomationService } from '../automations/automation-service.ts'
import type { Caller } from '../http/access.ts'
import { encodeCursor, JsonPage, walkJobs } from '../http/page.ts'
import { actorFor } from './actor.ts'
import { isVisible, storedJobId, visibleJob } from './job-access.ts'
import { jobListing, timeIn } from './job-query.ts'
import { walkOldest } from './oldest-jobs.ts'
import { explanationBody, fieldPicker, hasField, jobBody, listedWriter, workBody } from './wire-job.ts'
import type { ChildView } from './wire-job.ts'

/* What clients may ask of jobs, whatever the way they come. */

type JobQuery = ReturnType<typeof schemas.jobQuery.parse>
type JobListQuery = ReturnType<typeof schemas.jobListQuery.parse>

/** A page of a list, as it is written, and where the next one begins. */
export interface WrittenPage {
  readonly page: JsonPage
  readonly next: string | undefined
  /** Unix seconds. Where a page ended before it was full: everything since then has been looked through. */
  readonly lookedBackTo?: number | undefined
}

/** An answer that is held back: until the signal says that the caller has gone. */
export interface Hold {
  readonly signal: AbortSignal
  end(): void
}

export async function readJob(
  engine: Engine,
  caller: Caller,
  { id, wait = 0, version, until, fields }: JobQuery & { readonly id: string },
  hold: () => Hold,
): Promise<Partial<JobBody>> {
  const pick = fieldPicker(fields)
  const known = await visibleJob(engine, caller, id)
  const waitMs = Math.min(wait * 1_000, LIMITS.longPollMsMax)
  const shown = async (job: Stored<Job>): Promise<Partial<JobBody>> =>
    pick(hasField(fields, 'work') ? { ...jobBody(job), ...(await workFields(engine, job.value)) } : jobBody(job))
  if (waitMs === 0) return shown(known)
  const afterVersion = until === 'end' ? undefined : version
  const waiting = hold()
  try {
    const found = await engine.waitForJob(known.value.id, { afterVersion, waitMs, signal: waiting.signal })
    return await shown(found ?? known)
  } finally {
    waiting.end()
  }
}

export async function listJobs(engine: Engine, caller: Caller, given: JobListQuery): Promise<WrittenPage> {
  const write = listedWriter(given.fields)
  const { query, offset, isOldestFirst, oldestAfter: after } = jobListing(caller, given)
  const page = new JsonPage()
  /** Jobs with open work, by their place on the page. */
  const open = new Map<number, Job>()
  const take = (job: Stored<Job>): boolean => {
    if (!page.add(write(jobBody(job)))) return false
    if (hasOpenWork(job.value)) open.set(page.length - 1, job.value)
    return true
  }
  const next = isOldestFirst
    ? await walkOldest(engine, { query, after, take })
    : await walkJobs(engine, { query, skip: offset, take })
  if (hasField(given.fields, 'work')) await addWork(engine, page, open)
  if (next === undefined) return { page, next }
  const isShort = page.length < query.limit && !isOldestFirst
  return { page, next: encodeCursor(next), lookedBackTo: isShort ? timeIn(next) : undefined }
}

function hasOpenWork({ branches }: Job): boolean {
  for (const name in branches) if (branches[name]?.outcome === undefined) return true
  return false
}

async function workFields(engine: Engine, job: Job): Promise<Pick<JobBody, 'work'>> {
  const [work] = hasOpenWork(job) ? await engine.workOf([job]) : []
  return work === undefined ? {} : { work: workBody(work) }
}

/** With one look at the queue for the whole page. */
async function addWork(engine: Engine, page: JsonPage, open: ReadonlyMap<number, Job>): Promise<void> {
  if (open.size === 0) return
  const places = [...open.keys()]
  for (const [index, work] of (await engine.workOf([...open.values()])).entries()) {
    if (work !== undefined) page.extend(places[index] ?? 0, `"work":${JSON.stringify(workBody(work))}`)
  }
}

export async function explainJob(engine: Engine, caller: Caller, jobId: string): Promise<JsonObject> {
  const { value: job } = await visibleJob(engine, caller, jobId)
  return explanationBody(job, await engine.explainJob(job), await childrenOf(engine, job))
}

/** An explanation of a job with a thousand children shows that there are many, and how the first of them fare. */
const CHILDREN_MAX = 100
const CHILDREN_READ_MAX = 20

/** The children that a job waits for, those that are under way first. */
async function childrenOf(engine: Engine, { id, visit, branches }: Job): Promise<readonly ChildView[]> {
  const open: ChildView[] = []
  const ended: ChildView[] = []
  for (const [name, { call, outcome }] of Object.entries(branches)) {
    if (call.kind !== 'child') continue
    const places = outcome === undefined ? open : ended
    places.push({ jobId: childJobId(id, visit, name), blueprint: call.blueprint })
  }
  return Promise.all(
    [...open, ...ended].slice(0, CHILDREN_MAX).map(async (child, index) => {
      if (index >= CHILDREN_READ_MAX) return child
      return { ...child, status: (await engine.readJob(child.jobId))?.value.status }
    }),
  )
}

/** One that is cancelled already has what was asked for: the first answer was perhaps lost. */
export async function cancelJob(
  { engine, automations }: { readonly engine: Engine; readonly automations: AutomationService },
  caller: Caller,
  jobId: string,
  request: CancelJobRequest,
): Promise<CancelJobReply> {
  const id = await storedJobId(engine, caller, jobId)
  const stored = await engine.readJob(id)
  if (stored === undefined || !isVisible(caller, stored.value)) throw notCancellable()
  const applied = await automations.runs.cancelJob(stored.value, actorFor(caller), request.reason ?? undefined)
  if (applied.type !== 'applied' && applied.type !== 'repeated') throw notCancellable()
  return { status: 'cancellation_request_accepted', job_id: shownJobId(id), job_status: applied.job.status }
}

function notCancellable(): ImpresarioError {
  return new ImpresarioError('JOB_NOT_FOUND', 'Job not found or already terminal.')
}
