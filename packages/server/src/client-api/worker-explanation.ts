import { assess, describeMismatch, match, parseLane, workerOfLane } from '@impresario/core'
import type { Clock, Mismatch, Storage, WaitingLane, WorkerRecord } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import { z } from 'zod'
import { isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import type { SystemSettings } from './system-routes.ts'
import { EXACT_MAX } from './queue-routes.ts'

export interface WorkerExplanationParts {
  readonly engine: Engine
  readonly storage: Storage
  readonly clock: Clock
  readonly settings: Pick<SystemSettings, 'reputationMinThreshold' | 'workerHealthCheckIntervalSeconds'>
}

const REASONS = ['silent', 'draining', 'offline', 'full', 'reputation', 'skills', 'requirements', 'no_tasks'] as const

const mismatchBody = z.object({
  reason: z.string().describe('Such as `skill`, `gpu_vram` or `max_cost`.'),
  name: z.string().optional().describe('Which software or property.'),
  needed: z.unknown(),
  has: z.unknown().optional().describe('What the worker has instead; left out where that is a long list.'),
})

const waitingWork = z.object({
  task_type: z.string(),
  waiting: z.int().describe('Tasks that could be taken now.'),
  is_exact: z.boolean().describe('False: there may be more.'),
  fits: z.boolean(),
  reasons: z.array(z.string()).describe('What keeps the worker from them, in sentences.'),
  mismatches: z.array(mismatchBody).describe('The same as data.'),
})

export const workerExplanationReply = z.object({
  worker_id: z.string(),
  gets_tasks: z.boolean().describe('Whether nothing keeps it from the next task.'),
  reasons: z
    .array(
      z.object({
        code: z.enum(REASONS),
        message: z.string(),
        values: z.record(z.string(), z.number().nullable()).describe('What the message names.'),
      }),
    )
    .describe('Why it gets nothing, or seldom something; what lasts longest comes first.'),
  waiting: z
    .array(waitingWork)
    .nullable()
    .describe('Tasks that wait for any worker, what it could take first; at most 50 kinds. Null for all but admins.'),
})
type WorkerExplanation = z.output<typeof workerExplanationReply>
type Reason = WorkerExplanation['reasons'][number]

const KINDS_MAX = 50

/** Why a worker gets no tasks: what it says of itself, and what waits. Also of one that has fallen silent. */
export async function explainWorker(
  parts: WorkerExplanationParts,
  caller: Caller,
  id: string,
): Promise<WorkerExplanation> {
  const { engine, storage } = parts
  const live = engine.dispatcher.worker(id)
  const worker = live ?? (await storage.read('worker', id))?.value
  if (worker === undefined) throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found')
  const own = ownReasons(parts, worker, live !== undefined)
  const waiting = await waitingFor(storage, worker)
  const reasons = [...own, ...(own.some(({ code }) => code !== 'reputation') ? [] : workReasons(waiting, worker))]
  return {
    worker_id: id,
    gets_tasks: reasons.every(({ code }) => code === 'reputation' || code === 'no_tasks'),
    reasons,
    waiting: isAdmin(caller) ? waiting.slice(0, KINDS_MAX) : null,
  }
}

/** One that names nothing. */
function plain(code: Reason['code'], message: string): Reason {
  return { code, message, values: {} }
}

function ownReasons(
  { engine, clock, settings }: WorkerExplanationParts,
  worker: WorkerRecord,
  isLive: boolean,
): Reason[] {
  const silenceMs = settings.workerHealthCheckIntervalSeconds * 2_000
  const { id, status, reputation, concurrencyMax, isOpenEnded } = worker
  const reasons: Reason[] = []
  if (!isLive || assess(worker, clock.now(), silenceMs) === 'silent') {
    const message = `It has sent nothing for more than ${silenceMs / 1_000} seconds.`
    reasons.push({ code: 'silent', message, values: { seconds: silenceMs / 1_000 } })
  }
  if (status === 'draining') {
    reasons.push(plain('draining', 'It is about to stop: it ends its tasks and takes no more.'))
  }
  if (status === 'offline') reasons.push(plain('offline', 'It has signed off.'))
  const load = engine.dispatcher.loadOf(id)
  if (status === 'full' || (isOpenEnded !== true && load >= concurrencyMax)) {
    const slots = isOpenEnded === true ? 'and says that it has no room' : `and ${concurrencyMax} slots`
    const values = { load, slots: isOpenEnded === true ? null : concurrencyMax }
    reasons.push({ code: 'full', message: `It is full: it has ${load} tasks ${slots}.`, values })
  }
  if (reputation < settings.reputationMinThreshold) {
    const { reputationMinThreshold: least } = settings
    const message = `Its reputation is ${reputation}: workers with at least ${least} come before it.`
    reasons.push({ code: 'reputation', message, values: { reputation, least } })
  }
  return reasons
}

type WaitingWork = z.output<typeof waitingWork>

async function waitingFor(storage: Storage, worker: WorkerRecord): Promise<readonly WaitingWork[]> {
  const found: WaitingWork[] = []
  for (const { lane, ready } of await storage.lanes('tasks')) {
    const demand = ready > 0 && workerOfLane(lane) === undefined ? parseLane(lane) : undefined
    if (demand === undefined) continue
    const mismatches = lacks(demand, worker)
    found.push({
      task_type: demand.type,
      waiting: ready,
      is_exact: ready < EXACT_MAX,
      fits: mismatches.length === 0,
      reasons: mismatches.map(describeMismatch),
      mismatches: mismatches.map(withoutLists),
    })
  }
  const near = ({ fits, task_type: type }: WaitingWork): number => (fits ? 0 : worker.skills.includes(type) ? 1 : 2)
  return found.toSorted((a, b) => near(a) - near(b) || b.waiting - a.waiting)
}

/** What keeps it from the work itself; how busy it is has been said before. */
function lacks(demand: WaitingLane, worker: WorkerRecord): readonly Mismatch[] {
  const missing = match(demand, { ...worker, status: 'idle' })
  if (demand.exclude.includes(worker.id)) {
    missing.push({ reason: 'excluded', needed: 'another worker', has: worker.id })
  }
  return missing
}

/** All that the worker has would be said again for every kind of work. */
function withoutLists({ has, ...mismatch }: Mismatch): z.output<typeof mismatchBody> {
  return ['skill', 'skill_unavailable', 'models'].includes(mismatch.reason) ? mismatch : { ...mismatch, has }
}

function workReasons(waiting: readonly WaitingWork[], { skills }: WorkerRecord): readonly Reason[] {
  if (waiting.length === 0) return [plain('no_tasks', 'No task waits for a worker.')]
  if (waiting.some(({ fits }) => fits)) return []
  if (waiting.some(({ task_type: type }) => skills.includes(type))) {
    return [plain('requirements', 'Tasks that need its skills wait, and need something that it lacks.')]
  }
  return [plain('skills', 'No task that waits needs one of its skills.')]
}
