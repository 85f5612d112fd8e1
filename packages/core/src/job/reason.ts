import { isoInstant } from '@impresario/recurrence'
import type { Job } from './job.ts'

/** What a job stands still for, in a sentence for people; `undefined` for one that does not. */
export function waitReason(job: Job): string | undefined {
  const { compensation } = job
  const why = standing(job)
  const [undo] = compensation?.left ?? []
  if (compensation === undefined || undo === undefined) return why
  const undoing = `It undoes "${undo.state}" before it ends as ${compensation.outcome}.`
  return why === undefined ? undoing : `${undoing} ${why}`
}

function standing({ wait, status, error, branches }: Job): string | undefined {
  if (status === 'quarantined') {
    return `It is quarantined and waits for a person: ${error?.message ?? 'no reason is known.'}`
  }
  switch (wait?.kind) {
    case undefined:
      return undefined
    case 'sleep':
      return `It sleeps until ${isoInstant(wait.until)}, then goes on to "${wait.to}".`
    case 'event': {
      const by = wait.key === undefined ? '' : ` for the key "${wait.key}"`
      const until = wait.expiresAt === undefined ? '' : `, until ${isoInstant(wait.expiresAt)}`
      return `It waits for the event "${wait.topic}"${by}${until}.`
    }
    case 'human':
      return `It waits for a person to decide: ${wait.message}`
    case 'task':
    case 'child':
    case 'parallel': {
      const all = Object.values(branches)
      const open = all.filter(({ outcome }) => outcome === undefined)
      const names = [...new Set(open.map(({ call }) => (call.kind === 'task' ? call.type : call.blueprint)))]
      const what = names.map((name) => `"${name}"`).join(', ')
      return all.length === 1
        ? `It waits for ${what}.`
        : `It waits for ${open.length} of ${all.length} branches: ${what}.`
    }
  }
}
