import { contradictions, isEnded, wakeUps } from '@impresario/core'
import type { AwaitedChild, ItemView, Job, Queue, WakeUpItem } from '@impresario/core'
import { isJsonObject } from '@impresario/protocol'
import type { Finding } from './finding.ts'

/** A snapshot of the storage at one moment. */
export interface Sight {
  readonly item: (queue: Queue, id: string) => ItemView | undefined
  readonly job: (id: string) => Job | undefined
}

/** [C-05] A job that has not ended always has an item that will continue it, and its record is consistent. */
export function wakeUp(job: Job, sight: Sight): readonly Finding[] {
  const where = `${job.id} is ${job.status} in "${job.state}"`
  const findings: Finding[] = contradictions(job).map((problem) => ({ rule: 'sound', problem: `${where}: ${problem}` }))
  const missing = (what: string): void => {
    findings.push({ rule: 'wakeUp', problem: `${where} without ${what}` })
  }
  const { items, timers, children } = wakeUps(job)
  for (const item of [...items, ...timers]) if (!isThere(item, sight)) missing(`${item.queue} ${item.id}`)
  for (const child of children) if (!isOnItsWay(child, sight)) missing(`its child ${child.jobId}`)
  return findings
}

function isThere({ queue, id, payload }: WakeUpItem, sight: Sight): boolean {
  const found = sight.item(queue, id)?.payload
  if (found === undefined) return false
  return Object.entries(payload).every(([key, value]) => isJsonObject(found) && found[key] === value)
}

function isOnItsWay({ jobId, letters }: AwaitedChild, sight: Sight): boolean {
  const child = sight.job(jobId)
  if (child !== undefined && !isEnded(child)) return true
  return letters.some((id) => sight.item('mail', id) !== undefined)
}

interface WakeUpSources {
  readonly items: readonly { readonly queue: Queue; readonly id: string }[]
  readonly jobs: readonly string[]
}

/** The keys to read before `wakeUp` can decide. */
export function placesOf(job: Job): WakeUpSources {
  const { items, timers, children } = wakeUps(job)
  const letters = children.flatMap((child) => child.letters.map((id) => ({ queue: 'mail' as const, id })))
  return { items: [...items, ...timers, ...letters], jobs: children.map(({ jobId }) => jobId) }
}
