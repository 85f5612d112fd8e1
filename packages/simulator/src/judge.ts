import { isEnded, taskId, timerId, turnId } from '@impresario/core'
import type { Queue, Storage } from '@impresario/core'
import { accounted, idempotency } from './checkers/accounted.ts'
import { converges } from './checkers/converges.ts'
import { countsOnce } from './checkers/counts-once.ts'
import { durable } from './checkers/durable.ts'
import { endsOnce } from './checkers/ends-once.ts'
import { fenced } from './checkers/fenced.ts'
import type { Finding } from './checkers/finding.ts'
import type { Entry, Version } from './chronicle.ts'
import type { Setting } from './fleet.ts'
import type { Plan } from './plan.ts'

interface Case extends Setting {
  readonly plan: Plan
  readonly storage: Storage
  readonly isSettled: boolean
}

/** Puts the whole story and what is left in the storage before every checker. */
export async function judge(world: Case): Promise<readonly Finding[]> {
  const { chronicle, storage, plan, tally } = world
  const { entries } = chronicle
  const listed = await storage.list('job', { limit: 1_000_000 })
  const stored: readonly Version[] = listed.map(({ id, version, value }) => ({ id, version, job: value }))
  countFinished(world, stored)
  tally.add('jobs', stored.length)
  return [
    ...entries.filter((entry) => entry.type === 'broken').map(({ rule, problem }) => ({ rule, problem })),
    ...accounted(entries, stored),
    ...idempotency(entries, stored),
    ...endsOnce(entries, stored),
    ...countsOnce(entries),
    ...fenced(entries),
    ...durable(entries, stored),
    ...converges(stored),
    ...(world.isSettled ? [] : [{ rule: 'converges', problem: 'a client was never answered' }]),
    ...flaws(plan, stored),
    ...(await remains(storage, entries, stored)),
  ]
}

function flaws(plan: Plan, stored: readonly Version[]): readonly Finding[] {
  const pieces = new Map(plan.pieces.map((piece) => [piece.blueprint.name, piece]))
  const findings: Finding[] = []
  for (const { job } of stored) {
    const problem = pieces.get(job.blueprint)?.flaw?.(job)
    if (problem !== undefined) findings.push({ rule: 'rightResult', problem })
  }
  return findings
}

/** For the floor: of the jobs that could finish and that nobody cancelled, how many did. */
function countFinished({ plan, tally }: Case, stored: readonly Version[]): void {
  const pieces = new Map(plan.pieces.map((piece) => [piece.blueprint.name, piece]))
  for (const { job } of stored) {
    if (job.parent !== undefined || pieces.get(job.blueprint)?.finishes !== true || job.status === 'cancelled') continue
    tally.add('jobs that could finish', 1)
    if (job.status === 'finished') tally.add('jobs that did finish', 1)
  }
}

/** [C-05] Nothing of an ended job is left in any queue. */
async function remains(storage: Storage, entries: readonly Entry[], stored: readonly Version[]): Promise<readonly Finding[]> {
  const ended = new Set(stored.filter(({ job }) => isEnded(job)).map(({ id }) => id))
  const places = new Map<string, { queue: Queue; id: string }>()
  const add = (queue: Queue, id: string): void => void places.set(`${queue}/${id}`, { queue, id })
  for (const id of ended) {
    add('turns', turnId(id))
    add('timers', timerId(id, 'life'))
    add('timers', timerId(id, 'approval'))
    add('mail', `${id}.order`)
    add('mail', `${id}.ended`)
  }
  for (const entry of entries) {
    if (entry.type !== 'committed') continue
    for (const { id, job } of entry.jobs) {
      if (ended.has(id)) for (const name of Object.keys(job.branches)) add('tasks', taskId(id, job.visit, name))
    }
  }
  const findings: Finding[] = []
  for (const { queue, id } of places.values()) {
    const [view] = await storage.peek(queue, [id])
    if (view !== undefined) findings.push({ rule: 'leftBehind', problem: `${queue} ${id} remains after its job has ended` })
  }
  return findings
}
