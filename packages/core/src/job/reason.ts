import type { JsonObject } from '@impresario/protocol'
import { isoInstant } from '@impresario/recurrence'
import type { Job } from './job.ts'

/** One thing that a job stands still for, as data and as a sentence. Moments are milliseconds. */
export interface WaitReason {
  readonly code: 'undoing' | 'quarantined' | 'sleep' | 'event' | 'human' | 'branch' | 'branches'
  readonly values: JsonObject
  readonly sentence: string
}

/** What a job stands still for, in a sentence for people; `undefined` for one that does not. */
export function waitReason(job: Job): string | undefined {
  const reasons = waitReasons(job)
  return reasons.length === 0 ? undefined : reasons.map(({ sentence }) => sentence).join(' ')
}

/** The same one by one, for those who say it in another language. */
export function waitReasons(job: Job): readonly WaitReason[] {
  const { compensation } = job
  const why = standing(job)
  const found = why === undefined ? [] : [why]
  const [undo] = compensation?.left ?? []
  if (compensation === undefined || undo === undefined) return found
  const { outcome } = compensation
  const sentence = `It undoes "${undo.state}" before it ends as ${outcome}.`
  return [{ code: 'undoing', values: { state: undo.state, outcome }, sentence }, ...found]
}

function standing({ wait, status, error, branches }: Job): WaitReason | undefined {
  if (status === 'quarantined') {
    const sentence = `It is quarantined and waits for a person: ${error?.message ?? 'no reason is known.'}`
    return { code: 'quarantined', values: { message: error?.message ?? null }, sentence }
  }
  switch (wait?.kind) {
    case undefined:
      return undefined
    case 'sleep': {
      const { until, to } = wait
      const sentence = `It sleeps until ${isoInstant(until)}, then goes on to "${to}".`
      return { code: 'sleep', values: { until, to }, sentence }
    }
    case 'event': {
      const { topic, key = null, expiresAt = null } = wait
      const by = key === null ? '' : ` for the key "${key}"`
      const until = expiresAt === null ? '' : `, until ${isoInstant(expiresAt)}`
      const sentence = `It waits for the event "${topic}"${by}${until}.`
      return { code: 'event', values: { topic, key, until: expiresAt }, sentence }
    }
    case 'human': {
      const { message } = wait
      return { code: 'human', values: { message }, sentence: `It waits for a person to decide: ${message}` }
    }
    case 'task':
    case 'child':
    case 'parallel':
      return unfinished(branches)
  }
}

function unfinished(branches: Job['branches']): WaitReason {
  const all = Object.values(branches)
  const open = all.filter(({ outcome }) => outcome === undefined)
  const names = [...new Set(open.map(({ call }) => (call.kind === 'task' ? call.type : call.blueprint)))]
  const what = names.map((name) => `"${name}"`).join(', ')
  if (all.length === 1) return { code: 'branch', values: { names }, sentence: `It waits for ${what}.` }
  const sentence = `It waits for ${open.length} of ${all.length} branches: ${what}.`
  return { code: 'branches', values: { open: open.length, all: all.length, names }, sentence }
}
