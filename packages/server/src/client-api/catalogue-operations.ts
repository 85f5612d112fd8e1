import { FirstInOrder, nearWord } from '@impresario/core'
import type { RunnableBlueprint, Storage, WorkerRecord } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, JOB_STATUSES, LIMITS, writeJson } from '@impresario/protocol'
import type { BlueprintBody, DashboardBody, WorkerBody } from '@impresario/protocol'
import type * as schemas from '@impresario/protocol/schemas'
import { isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import { ANY_NAME, decodeCursor, encodeCursor, JsonPage } from '../http/page.ts'
import type { ReloadableRegistry } from '../orchestrator/reloadable-registry.ts'
import type { HistoryReader } from '../orchestrator/history.ts'
import { catalogueOf } from '../worker-protocol/skill-catalogue.ts'
import { workerBody } from '../worker-protocol/wire-worker.ts'
import { ownerFilter } from './job-access.ts'
import type { WrittenPage } from './job-operations.ts'
import { blueprintBody } from './wire-job.ts'

/* What clients may see beside jobs: workers, blueprints and an overview. */

export interface CatalogueParts {
  readonly engine: Engine
  readonly storage: Storage
  readonly blueprints: ReloadableRegistry
  readonly history: Pick<HistoryReader, 'status' | 'isComplete'>
}

export function listWorkers(
  { dispatcher }: Engine,
  { limit = LIMITS.workersPageMax, cursor }: ReturnType<typeof schemas.workerListQuery.parse>,
): WrittenPage {
  const after = cursor === undefined ? undefined : decodeCursor(cursor, ANY_NAME)
  const first = new FirstInOrder<WorkerRecord>(limit + 1, (a, b) => (a.id < b.id ? -1 : 1))
  for (const worker of dispatcher.workers()) if (after === undefined || worker.id > after) first.add(worker)
  const page = new JsonPage()
  let last: string | undefined
  for (const worker of first.first()) {
    const text = writeJson(workerBody(worker, dispatcher.loadOf(worker.id)))
    if (page.length < limit && page.add(text)) last = worker.id
    else break
  }
  return { page, next: last !== undefined && page.length < first.count ? encodeCursor(last) : undefined }
}

export function readWorker({ dispatcher }: Engine, id: string): WorkerBody {
  const worker = dispatcher.worker(id)
  if (worker === undefined) throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found')
  return workerBody(worker, dispatcher.loadOf(id))
}

/** Its texts are properties, each the name of a skill with what is known of it. */
export async function listSkills(
  { dispatcher }: Engine,
  { cursor }: ReturnType<typeof schemas.catalogueQuery.parse>,
): Promise<WrittenPage> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor, ANY_NAME)
  const all = await catalogueOf(dispatcher.workers())
  const skills = after === undefined ? all : all.filter(([name]) => name > after)
  const page = new JsonPage()
  let last: string | undefined
  for (const [name, entry] of skills) {
    if (!page.add(`${JSON.stringify(name)}:${writeJson(entry)}`)) break
    last = name
  }
  return { page, next: last !== undefined && page.length < skills.length ? encodeCursor(last) : undefined }
}

export function listBlueprints(blueprints: ReloadableRegistry): readonly BlueprintBody[] {
  return blueprints.list().map(blueprintBody)
}

export function findBlueprint(blueprints: ReloadableRegistry, name: string, version?: number): RunnableBlueprint {
  const found = version === undefined ? blueprints.latest(name) : blueprints.get(name, version)
  if (found !== undefined) return found
  const meant = nearWord(
    name,
    blueprints.list().map((one) => one.name),
  )
  const suggestion = meant === undefined || meant === name ? '' : `. Did you mean "${meant}"?`
  throw new ImpresarioError('BLUEPRINT_NOT_FOUND', `Blueprint not found${suggestion}`)
}

export async function drawBlueprint(
  blueprints: ReloadableRegistry,
  name: string,
  format: 'dot' | 'svg',
  version?: number,
): Promise<string> {
  const blueprint = findBlueprint(blueprints, name, version)
  // Loaded when it is needed: programs that embed an orchestrator may never draw.
  const { GraphTooLargeError, renderGraph } = await import('@impresario/graph')
  try {
    return await renderGraph(blueprint, { format })
  } catch (error) {
    if (!(error instanceof GraphTooLargeError)) throw error
    throw new ImpresarioError('LIMIT_EXCEEDED', `${error.message} Ask for format=dot and draw it yourself.`)
  }
}

export async function dashboard(parts: CatalogueParts, caller: Caller): Promise<DashboardBody> {
  const workers: Record<string, number> = {}
  const live = parts.engine.dispatcher.workers()
  for (const { status } of live) workers[status] = (workers[status] ?? 0) + 1
  const jobs = await jobCounts(parts, ownerFilter(caller, undefined))
  const { isAway, waiting, dropped } = parts.history.status
  return {
    workers: { total: live.length, ...workers },
    jobs: { queued: jobs['pending'] ?? 0, ...jobs },
    keeps_history: parts.history.isComplete,
    ...(isAdmin(caller) ? { history: { is_away: isAway, waiting, dropped } } : {}),
  }
}

/** Jobs counted per status at most where the storage keeps no counts: an overview has to stay cheap. */
const COUNTED_MAX = 1_000

async function jobCounts(
  { engine, storage }: CatalogueParts,
  of: { readonly owner?: string },
): Promise<Readonly<Record<string, number>>> {
  const counted = await storage.counts?.('job', of)
  if (counted !== undefined) return counted
  const counts: Record<string, number> = {}
  for (const status of JOB_STATUSES) {
    const found = await engine.listJobs({ ...of, status, limit: COUNTED_MAX })
    if (found.length > 0) counts[status] = found.length
  }
  return counts
}
