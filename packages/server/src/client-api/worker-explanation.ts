import { assess, describeMismatch, match, parseLane, workerOfLane } from '@impresario/core'
import type { Clock, Storage, WaitingLane, WorkerRecord } from '@impresario/core'
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

const waitingWork = z.object({
  task_type: z.string(),
  waiting: z.int().describe('Tasks that could be taken now.'),
  is_exact: z.boolean().describe('False: there may be more.'),
  fits: z.boolean(),
  reasons: z.array(z.string()).describe('What keeps the worker from them, in sentences.'),
})

export const workerExplanationReply = z.object({
  worker_id: z.string(),
  gets_tasks: z.boolean().describe('Whether nothing keeps it from the next task.'),
  reasons: z
    .array(z.object({ code: z.enum(REASONS), message: z.string() }))
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
    reasons.push({ code: 'silent', message })
  }
  if (status === 'draining') {
    reasons.push({ code: 'draining', message: 'It is about to stop: it ends its tasks and takes no more.' })
  }
  if (status === 'offline') reasons.push({ code: 'offline', message: 'It has signed off.' })
  const load = engine.dispatcher.loadOf(id)
  if (status === 'full' || (isOpenEnded !== true && load >= concurrencyMax)) {
    const slots = isOpenEnded === true ? 'and says that it has no room' : `and ${concurrencyMax} slots`
    reasons.push({ code: 'full', message: `It is full: it has ${load} tasks ${slots}.` })
  }
  if (reputation < settings.reputationMinThreshold) {
    const least = `at least ${settings.reputationMinThreshold}`
    const message = `Its reputation is ${reputation}: workers with ${least} come before it.`
    reasons.push({ code: 'reputation', message })
  }
  return reasons
}

type WaitingWork = z.output<typeof waitingWork>

async function waitingFor(storage: Storage, worker: WorkerRecord): Promise<readonly WaitingWork[]> {
  const found: WaitingWork[] = []
  for (const { lane, ready } of await storage.lanes('tasks')) {
    const demand = ready > 0 && workerOfLane(lane) === undefined ? parseLane(lane) : undefined
    if (demand === undefined) continue
    const reasons = lacks(demand, worker)
    found.push({
      task_type: demand.type,
      waiting: ready,
      is_exact: ready < EXACT_MAX,
      fits: reasons.length === 0,
      reasons,
    })
  }
  const near = ({ fits, task_type: type }: WaitingWork): number => (fits ? 0 : worker.skills.includes(type) ? 1 : 2)
  return found.toSorted((a, b) => near(a) - near(b) || b.waiting - a.waiting)
}

/** What keeps it from the work itself; how busy it is has been said before. */
function lacks(demand: WaitingLane, worker: WorkerRecord): string[] {
  const missing = match(demand, { ...worker, status: 'idle' }).map(describeMismatch)
  if (demand.exclude.includes(worker.id)) {
    missing.push(describeMismatch({ reason: 'excluded', needed: 'another worker', has: worker.id }))
  }
  return missing
}

function workReasons(waiting: readonly WaitingWork[], { skills }: WorkerRecord): readonly Reason[] {
  if (waiting.length === 0) return [{ code: 'no_tasks', message: 'No task waits for a worker.' }]
  if (waiting.some(({ fits }) => fits)) return []
  if (waiting.some(({ task_type: type }) => skills.includes(type))) {
    return [{ code: 'requirements', message: 'Tasks that need its skills wait, and need something that it lacks.' }]
  }
  return [{ code: 'skills', message: 'No task that waits needs one of its skills.' }]
}
