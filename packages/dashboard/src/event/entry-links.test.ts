import type { EventBody } from '@impresario/protocol'
import { expect, test } from 'vitest'
import type { AuditBody } from '../data/automation-queries.ts'
import { subjectsOfAudit, subjectsOfEvent } from './entry-links.ts'

const audit = (action: string, details: AuditBody['details'] = {}): AuditBody => ({
  id: 'a1',
  at: 1,
  actor: 'alpha',
  on_behalf_of: null,
  action,
  subject: 's1',
  owner: 'alpha',
  details,
})

test('[M-02] an entry of the audit log leads to what it is about, and to nothing that is not there', () => {
  expect(subjectsOfAudit(audit('automation.paused'))).toEqual([{ kind: 'automation', id: 's1' }])
  expect(subjectsOfAudit(audit('automation.deleted'))).toEqual([])
  expect(subjectsOfAudit(audit('agent.token_created'))).toEqual([{ kind: 'agent', id: 's1' }])
  expect(subjectsOfAudit(audit('agent.deleted'))).toEqual([])
  expect(subjectsOfAudit(audit('secret.created'))).toEqual([])
  expect(subjectsOfAudit(audit('run.started', { run_id: 'r1', event_id: 'e1', rerun_of: 'r0' }))).toEqual([
    { kind: 'automation', id: 's1' },
    { kind: 'run', id: 'r1' },
    { kind: 'run', id: 'r0' },
    { kind: 'event', id: 'e1' },
  ])
  expect(subjectsOfAudit(audit('run.skipped', { run_id: 'r1', instead: 'r2' }))).toEqual([
    { kind: 'automation', id: 's1' },
    { kind: 'run', id: 'r2' },
  ])
})

test('[M-02] an event leads to its job, blueprint and worker, one of a run to the run and its automation', () => {
  const nothing = { state: null, previous_state: null, next_state: null, task_id: null, attempt_number: null }
  const rest = {
    ...nothing,
    duration_ms: null,
    note: null,
    context_snapshot: null,
    owner: null,
    time: '',
    timestamp: 1,
  }
  const event = (of: Pick<EventBody, 'job_id' | 'blueprint' | 'worker_id'>): EventBody => ({
    event_id: '1-1',
    event_type: 'task_finished',
    ...rest,
    ...of,
  })
  expect(subjectsOfEvent(event({ job_id: 'j1', blueprint: 'order', worker_id: 'w1' }))).toEqual([
    { kind: 'job', id: 'j1' },
    { kind: 'blueprint', id: 'order' },
    { kind: 'worker', id: 'w1' },
  ])
  expect(subjectsOfEvent(event({ job_id: 'j1', blueprint: 'automation/a1', worker_id: null }))).toEqual([
    { kind: 'job', id: 'j1' },
    { kind: 'automation', id: 'a1' },
    { kind: 'run', id: 'j1' },
  ])
  expect(subjectsOfEvent(event({ job_id: null, blueprint: null, worker_id: 'w1' }))).toEqual([
    { kind: 'worker', id: 'w1' },
  ])
})
