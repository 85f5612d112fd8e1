import type { Log } from '@impresario/core'
import { expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'
import { RefusedWorkers } from './refused-workers.ts'

function listLog(): { readonly lines: string[]; readonly log: Log } {
  const lines: string[] = []
  const warn = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    lines.push(`${message} ${JSON.stringify(fields)}`)
  }
  const nothing = (): void => undefined
  return { lines, log: { debug: nothing, info: nothing, warn, error: nothing } }
}

test('[H-01] [I-05] a worker with a wrong token is told of once a minute, with its id and without its token', async () => {
  const { lines, log } = listLog()
  const app = await startTestServer({ log })
  const headers = { 'x-worker-token': 'a-wrong-token' }
  for (let time = 0; time < 3; time += 1) {
    const { status } = await app.call('GET', '/_worker/workers/gpu-1/tasks/next?timeout=1', { headers })
    expect(status).toBe(401)
  }
  await app.server.stop()
  const refused = lines.filter((line) => line.startsWith('a worker was refused'))
  expect(refused).toHaveLength(1)
  expect(refused[0]).toContain('"worker_id":"gpu-1","address":"127.0.0.1","reason":"Unauthorized: Invalid token"')
  expect(lines.join('\n')).not.toContain('a-wrong-token')
})

test('[H-01] [I-05] many refused workers do not fill the log', () => {
  const { lines, log } = listLog()
  let now = 0
  const refused = new RefusedWorkers(log, () => now)
  const note = (workerId?: string) => refused.note({ workerId, address: '10.0.0.1', reason: 'no' })
  for (let id = 0; id < 50; id += 1) note(`${id}`.padEnd(1_000, 'x'))
  expect(lines).toHaveLength(10)
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(400)
  now = 60_000
  note()
  note()
  expect(lines).toHaveLength(11)
})
