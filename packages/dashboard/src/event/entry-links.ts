import type { EventBody } from '@impresario/protocol'
import type { AuditBody } from '../data/automation-queries.ts'
import { automationIn } from '../data/automation-name.ts'

/** Something that has a page of its own. */
export interface Subject {
  readonly kind: 'job' | 'run' | 'automation' | 'blueprint' | 'worker' | 'agent' | 'event'
  readonly id: string
}

/** What an event of the history is about. */
export function subjectsOfEvent({ job_id: job, blueprint, worker_id: worker }: EventBody): readonly Subject[] {
  const automation = blueprint === null ? undefined : automationIn(blueprint)
  const found: Subject[] = []
  if (job !== null) found.push({ kind: 'job', id: job })
  if (automation !== undefined) found.push({ kind: 'automation', id: automation })
  if (automation !== undefined && job !== null) found.push({ kind: 'run', id: job })
  if (automation === undefined && blueprint !== null) found.push({ kind: 'blueprint', id: blueprint })
  if (worker !== null) found.push({ kind: 'worker', id: worker })
  return found
}

/** What an entry of the audit log is about. What is deleted has no page any more, and a skipped run never had one. */
export function subjectsOfAudit({ action, subject, details }: AuditBody): readonly Subject[] {
  const [area, deed] = action.split('.')
  const found: Subject[] = []
  const add = (kind: Subject['kind'], id: unknown): void => {
    if (typeof id === 'string' && id !== '') found.push({ kind, id })
  }
  if (area === 'automation' && deed !== 'deleted') add('automation', subject)
  if (area === 'run') add('automation', subject)
  if (area === 'agent' && deed !== 'deleted') add('agent', subject)
  if (area === 'run' && deed !== 'skipped') add('run', details['run_id'])
  add('run', details['instead'])
  add('run', details['rerun_of'])
  add('event', details['event_id'])
  return found
}
