import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'

test('[I-03] [J-13] without any telemetry packages or settings, jobs run', async () => {
  const packages = fileURLToPath(new URL('../../../', import.meta.url))
  // Users install them only where they want telemetry, so that nothing may load them by itself.
  const loading = readdirSync(packages, { recursive: true, encoding: 'utf8' })
    .filter((path) => /^[^/]+\/src\/.*\.ts$/.test(path) && !path.endsWith('.test.ts'))
    .filter((path) => /^import (?!type ).*'@opentelemetry\//m.test(readFileSync(`${packages}${path}`, 'utf8')))
  expect(loading).toEqual([])
  const app = await startTestServer()
  await app.register('w1')
  const jobId = await app.createJob('echo')
  const { body: task } = await app.poll('w1')
  const result = { job_id: jobId, task_id: task.task_id, worker_id: 'w1' }
  expect((await app.worker('POST', '/_worker/tasks/result', result)).body).toMatchObject({ status: 'accepted' })
  expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
  await app.server.stop()
})
