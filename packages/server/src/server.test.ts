import { blueprint } from '@impresario/core'
import { afterEach, expect, test } from 'vitest'
import { SILENT } from './log.ts'
import { createServer } from './server.ts'
import type { Server } from './server.ts'

const greet = blueprint('greet', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'greet', params: { name: 'Ada' }, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

let server: Server | undefined
afterEach(async () => {
  await server?.stop()
})

test('[E-01] a job goes from its creation over a worker to its end', async () => {
  server = createServer({
    settings: { storageUrl: 'memory:', apiHost: '127.0.0.1', apiPort: 0, clientToken: 'c', workerToken: 'w' },
    blueprints: [greet],
    log: SILENT,
  })
  const { address } = await server.start()
  const worker = { 'content-type': 'application/json', 'x-worker-token': 'w' }
  const client = { 'content-type': 'application/json', 'x-client-token': 'c' }
  const registered = await fetch(`${address}/_worker/workers/register`, {
    method: 'POST',
    headers: worker,
    body: JSON.stringify({ worker_id: 'w1', supported_skills: ['greet'] }),
  })
  expect(await registered.json()).toMatchObject({ status: 'registered', batch: { tasks_max: 500 } })
  const polling = fetch(`${address}/_worker/workers/w1/tasks/next`, { headers: worker })
  const created = await fetch(`${address}/api/v1/jobs`, {
    method: 'POST',
    headers: client,
    body: JSON.stringify({ blueprint: 'greet' }),
  })
  expect(created.status).toBe(202)
  const { job_id: jobId } = (await created.json()) as { job_id: string }
  const task = (await (await polling).json()) as { job_id: string; task_id: string }
  expect(task).toMatchObject({ job_id: jobId, type: 'greet', params: { name: 'Ada' }, attempt: 1, delivery: 1 })
  const result = await fetch(`${address}/_worker/tasks/result`, {
    method: 'POST',
    headers: worker,
    body: JSON.stringify({
      job_id: jobId,
      task_id: task.task_id,
      worker_id: 'w1',
      status: 'success',
      data: { text: 'Hello' },
    }),
  })
  expect(await result.json()).toEqual({ status: 'accepted', transition: 'success_transition' })
  const ended = await fetch(`${address}/api/v1/jobs/${jobId}?wait=10&until=end`, { headers: client })
  expect(await ended.json()).toMatchObject({ status: 'finished', state_history: { text: 'Hello' } })
})
