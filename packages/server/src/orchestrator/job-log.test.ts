import { onTestFinished, expect, test } from 'vitest'
import { createLog } from '../runtime/log.ts'
import { startTestServer } from '../server.fixture.ts'

test('[I-05] a job that fails is one JSON line in the time zone of the server, with job, task and worker', async () => {
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    format: 'json',
    timeZone: 'Asia/Kolkata',
    instance: 'here',
    destination: { write: (line) => lines.push(line) },
  })
  const app = await startTestServer({ log })
  onTestFinished(() => app.server.stop())
  await app.register('w1')
  const jobId = await app.createJob('echo')
  const { body } = await app.poll('w1')
  await app.worker('POST', '/_worker/tasks/result', {
    job_id: jobId,
    task_id: body.task_id,
    worker_id: 'w1',
    status: 'failure',
    error: { code: 'INVALID_INPUT_ERROR', message: 'no such\nfile' },
  })
  await app.ended(jobId)
  const told = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['job_id'] === jobId)
  expect(told).toMatchObject([
    { level: 'warn', msg: 'a task failed' },
    { level: 'warn', msg: 'a job failed' },
  ])
  for (const line of told) {
    expect(line).toMatchObject({
      instance: 'here',
      worker_id: 'w1',
      task_id: expect.stringContaining(jobId) as string,
      blueprint: 'echo',
      code: 'INVALID_INPUT_ERROR',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\+05:30$/) as string,
    })
  }
})
