import { newWorkerRecord } from '@impresario/core'
import { describe, expect, test } from 'vitest'
import { REGISTRATIONS } from '../worker-api/generations.fixture.ts'
import { readHeartbeat, readProgress, readRegistration, readReport } from './wire-worker.ts'

test.each(REGISTRATIONS)('[E-01] a registration of %s becomes a record', (_title, body, expected) => {
  const record = newWorkerRecord(readRegistration(body), 5)
  expect(record).toMatchObject({ id: body.worker_id, registeredAt: 5, ...expected })
})

describe('heartbeats', () => {
  test('[E-03] names of the older generations are what can be started now', () => {
    expect(readHeartbeat({ status: 'busy', supported_tasks: [] })).toMatchObject({
      status: 'busy',
      availableSkills: [],
    })
    expect(readHeartbeat({ supported_skills: ['a'] })).toMatchObject({ availableSkills: ['a'] })
    expect(readHeartbeat({ supported_skills: ['a'] })).not.toHaveProperty('skills')
  })

  test('[E-03] described skills replace the list', () => {
    const patch = readHeartbeat({ supported_skills: [{ name: 'a' }, { name: 'b' }], available_skills: ['b'] })
    expect(patch).toMatchObject({ skills: ['a', 'b'], availableSkills: ['b'] })
  })

  test('[E-03] J-7: nulls and unknown statuses count as not said', () => {
    const worker = newWorkerRecord({ id: 'w', skills: ['a'], hotSkills: ['a'] }, 1)
    const patch = readHeartbeat({ status: null, hot_skills: null, hot_cache: null, supported_skills: null })
    expect(Object.values(patch).every((value) => value === undefined || value === null)).toBe(true)
    expect(worker.hotSkills).toEqual(['a'])
    expect(readHeartbeat({ status: 'dancing' as never }).status).toBeUndefined()
  })
})

describe('results', () => {
  const ids = { job_id: 'j', task_id: 't' }
  test.each([
    ['flat', { ...ids, status: 'success', data: { a: 1 } }, { taskId: 't', status: 'success', data: { a: 1 } }],
    ['nested', { ...ids, result: { status: 'done', data: 5 } }, { taskId: 't', status: 'done', data: 5 }],
    ['without a status', { ...ids, data: null, error: null }, { taskId: 't', status: 'success' }],
    [
      'with a plain error',
      { ...ids, result: { error: 'broken' } },
      { taskId: 't', status: 'failure', error: { code: 'TRANSIENT_ERROR', message: 'broken' } },
    ],
    [
      'with a loose message',
      { ...ids, status: 'failure', error_message: 'no such task' },
      { taskId: 't', status: 'failure', error: { code: 'TRANSIENT_ERROR', message: 'no such task' } },
    ],
    [
      'with a code',
      { ...ids, status: 'failure', error: { code: 'PERMANENT_ERROR', message: 'm', details: {} } },
      { taskId: 't', status: 'failure', error: { code: 'PERMANENT_ERROR', message: 'm' } },
    ],
    [
      'with an unknown code',
      { ...ids, status: 'failure', error: { code: 'ODD', message: null } },
      { taskId: 't', status: 'failure', error: { code: 'TRANSIENT_ERROR', message: 'The worker gave no message.' } },
    ],
  ])('[E-01] a result %s is read', (_title, body, expected) => {
    expect(readReport(body)).toEqual(expected)
  })

  test.each([
    ['not an object', 5],
    ['no task id', { job_id: 'j' }],
    ['no job id', { task_id: 't' }],
  ])('[E-01] a result with %s is refused in its place', (_title, body) => {
    expect(readReport(body)).toMatchObject({ code: 'INVALID_REQUEST' })
  })
})

test('[E-01] progress is held between 0 and 1', () => {
  expect(readProgress({ progress: 1.5, message: 'm' })).toEqual({ fraction: 1, message: 'm' })
  expect(readProgress({ progress: -1 })).toEqual({ fraction: 0, message: undefined })
  expect(readProgress({ progress: 'half' })).toBeUndefined()
  expect(readProgress(null)).toBeUndefined()
})
