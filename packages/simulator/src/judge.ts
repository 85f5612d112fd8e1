import { isEnded, taskId, timerId, turnId, wakeUps } from '@impresario/core'
import type { Queue, Storage } from '@impresario/core'
import type { Piece } from './blueprints/stage.ts'
import { accounted, idempotency } from './checkers/accounted.ts'
import { converges } from './checkers/converges.ts'
import { countsOnce } from './checkers/counts-once.ts'
import { durable } from './checkers/durable.ts'
import { endsOnce } from './checkers/ends-once.ts'
import { fenced } from './checkers/fenced.ts'
import type { Finding } from './checkers/finding.ts'
import { givesUp } from './checkers/gives-up.ts'
import { stopsLost } from './checkers/stops-lost.ts'
import { told } from './checkers/told.ts'
import type { Entry, ItemRef, Version } from './chronicle.ts'
import type { Fleet, Setting } from './fleet.ts'

interface Case extends Setting {
  readonly pieces: readonly Piece[]
  readonly storage: Storage
  readonly isSettled: boolean
  readonly fleet: Fleet
}

/** Passes the whole log and the final content of the storage to every checker. */
export async function judge(world: Case): Promise<readonly Finding[]> {
  const { chronicle, storage, pieces, tally } = world
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
    ...stopsLost(entries),
    ...givesUp(entries),
    ...durable(entries, stored),
    ...converges(stored),
    ...(await told(stored, storage)),
    ...(world.isSettled ? [] : [{ rule: 'converges', problem: 'a client was never answered' }]),
    ...flaws(pieces, stored),
    ...(isEverythingEnded(stored) ? [...(await leftovers(storage, entries)), ...loads(world.fleet)] : []),
  ]
}

function isEverythingEnded(stored: readonly Version[]): boolean {
  return stored.every(({ job }) => isEnded(job))
}

/** [D-02] Once nothing is left to do, no engine counts a worker as busy. */
export function loads(fleet: Fleet): readonly Finding[] {
  const findings: Finding[] = []
  for (const { name, engine } of fleet.ready) {
    for (const { id } of engine.dispatcher.workers()) {
      const load = engine.dispatcher.loadOf(id)
      if (load > 0) {
        findings.push({ rule: 'loadReturns', problem: `${name} counts ${load} tasks for ${id}, which has none` })
      }
    }
  }
  return findings
}

function flaws(pieces: readonly Piece[], stored: readonly Version[]): readonly Finding[] {
  const byName = new Map(pieces.map((piece) => [piece.blueprint.name, piece]))
  const findings: Finding[] = []
  for (const { job } of stored) {
    const problem = byName.get(job.blueprint)?.flaw?.(job)
    if (problem !== undefined) findings.push({ rule: 'rightResult', problem })
  }
  return findings
}

/** For the floor: of the jobs that could finish and were not cancelled, how many did. */
function countFinished({ pieces, tally }: Case, stored: readonly Version[]): void {
  const byName = new Map(pieces.map((piece) => [piece.blueprint.name, piece]))
  for (const { job } of stored) {
    if (job.parent !== undefined || byName.get(job.blueprint)?.finishes !== true || job.status === 'cancelled') continue
    tally.add('jobs that could finish', 1)
    if (job.status === 'finished') tally.add('jobs that did finish', 1)
  }
}

/** [C-05] No item of an ended job is left in any queue: finds those that are. */
export async function leftovers(storage: Storage, entries: readonly Entry[]): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const { queue, id } of placesOfEnded(entries)) {
    const [view] = await storage.peek(queue, [id])
    if (view !== undefined) {
      findings.push({ rule: 'leftBehind', problem: `${queue} ${id} remains after its job has ended` })
    }
  }
  return findings
}

function placesOfEnded(entries: readonly Entry[]): Iterable<ItemRef> {
  const places = new Map<string, ItemRef>()
  const add = (queue: Queue, id: string): void => {
    places.set(`${queue}/${id}`, { queue, id })
  }
  for (const entry of entries) {
    if (entry.type !== 'committed') continue
    for (const { id, job } of entry.jobs) {
      for (const name of Object.keys(job.branches)) add('tasks', taskId(id, job.visit, name))
      for (const { letters } of wakeUps(job).children) for (const letter of letters) add('mail', letter)
      if (!isEnded(job)) continue
      add('turns', turnId(id))
      for (const timer of ['life', 'approval', 'reminder', 'sleep', 'event']) add('timers', timerId(id, timer))
    }
  }
  return places.values()
}
