import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint, requirementLane } from '@impresario/core'
import { createWorker } from '@impresario/worker'
import { expect, onTestFinished, test } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { createOrchestrator } from '../orchestrator.ts'
import type { Orchestrator } from '../orchestrator.ts'
import { SILENT } from '../runtime/log.ts'
import { GaugeReader } from './gauge-reader.ts'
import { Metrics } from './metrics.ts'

const work = blueprint('work', { start: 'ask' }, (state) => ({
  ask: state.handler(({ initialData }, actions) =>
    actions.dispatchTask({ type: initialData['type'] as string, params: {}, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))
const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))

async function start(settings: object = {}): Promise<Orchestrator> {
  const orchestrator = createOrchestrator({
    blueprints: [work, quick],
    settings: { storageUrl: newStorageUrl(), logLevel: 'silent', ...settings },
  })
  await orchestrator.start()
  onTestFinished(() => orchestrator.stop())
  return orchestrator
}

function figure(metrics: Metrics, name: string): number | undefined {
  const line = metrics
    .text()
    .split('\n')
    .find((one) => one.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1))
}

test('[I-03] tasks that wait are told by kind of work and by age, and those in hands are counted', async () => {
  const orchestrator = await start()
  const { metrics, gauges } = orchestrator.parts
  const held = new AbortController()
  const worker = createWorker({ transport: orchestrator.localTransport(), shutdownMs: 0, log: SILENT })
  worker.task('long', async () => {
    await once(held.signal, 'abort')
    return {}
  })
  await worker.start()
  onTestFinished(() => worker.stop())
  const client = orchestrator.client()
  const long = await client.start('work', { type: 'long' })
  await client.start('work', { type: 'nobody-does-this' })
  const read = async (name: string): Promise<number | undefined> => {
    await gauges.read()
    return figure(metrics, name)
  }
  await expect.poll(() => read('impresario_tasks_waiting{task_type="nobody-does-this"}')).toBe(1)
  await expect.poll(() => read('impresario_queue_oldest_seconds{queue="tasks"}')).toBeGreaterThan(0)
  await expect.poll(() => read('impresario_leases_held')).toBe(1)
  expect(await read('impresario_queue_oldest_seconds{queue="outbox"}')).toBe(0)
  held.abort()
  await long.result()
  await expect.poll(() => read('impresario_leases_held')).toBe(0)
  for (const operation of ['commit', 'flush']) {
    const count = figure(metrics, `impresario_storage_write_seconds_count{operation="${operation}"}`)
    expect(count).toBeGreaterThan(0)
  }
})

test('[I-03] [K-02] occurrences that do not run are counted by reason, once each', async () => {
  const orchestrator = await start()
  const client = orchestrator.client()
  const { id } = await client.automations.create({
    title: 'Once',
    dedupe: { key: 'always', windowSeconds: 3_600 },
    pipeline: [{ id: 'tell', uses: 'log', with: { message: 'Hello' } }],
  })
  for (let times = 0; times < 3; times += 1) await client.automations.run(id).catch(() => undefined)
  const { metrics } = orchestrator.parts
  expect(figure(metrics, 'impresario_firings_skipped_total{reason="deduplicated"}')).toBe(2)
  expect(figure(metrics, 'impresario_firings_skipped_total{reason="overlap"}')).toBe(0)
})

test('[I-03] how late schedules fire is measured', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-lag-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const schedulesConfigPath = join(directory, 'schedules.toml')
  await writeFile(schedulesConfigPath, '[often]\nblueprint = "quick"\ninterval_seconds = 1\n')
  const { metrics } = (await start({ schedulesConfigPath })).parts
  const seen = (): number => figure(metrics, 'impresario_scheduler_lag_seconds_count') ?? 0
  await expect.poll(seen, { timeout: 30_000 }).toBeGreaterThan(0)
  const mean = (figure(metrics, 'impresario_scheduler_lag_seconds_sum') ?? Number.NaN) / seen()
  // In seconds: not in milliseconds, and not since 1970.
  expect(mean).toBeLessThan(600)
}, 40_000)

test('[I-03] kinds of work beyond the fifty longest are one, and tasks for one worker are another', async () => {
  const storage = testStorage({ now: () => 1_000 })
  onTestFinished(() => storage.close())
  const item = (id: string, lane: string) =>
    ({ queue: 'tasks', id, lane, priority: 0, delayMs: 0, payload: {} }) as const
  const lanes = Array.from({ length: 60 }, (_, index) => requirementLane({ type: `made-up-${index}` }))
  const many = lanes.flatMap((lane, index) => [
    item(`a${index}`, lane),
    ...(index < 50 ? [item(`b${index}`, lane)] : []),
  ])
  await storage.commit({ enqueue: [...many, ...['x', 'y', 'z'].map((id) => item(id, 'worker:one'))] })
  const metrics = new Metrics()
  const gauges = new GaugeReader({
    metrics,
    storage,
    log: SILENT,
    workers: () => [],
    heldTasks: () => 0,
    history: () => ({ waiting: 0, dropped: 0 }),
    dataDirectory: undefined,
    certificatePath: undefined,
  })
  await gauges.read()
  const lines = metrics
    .text()
    .split('\n')
    .filter((line) => line.startsWith('impresario_tasks_waiting{'))
  expect(lines).toHaveLength(51)
  expect(figure(metrics, 'impresario_tasks_waiting{task_type="placed"}')).toBe(3)
  expect(figure(metrics, 'impresario_tasks_waiting{task_type="other"}')).toBe(12)
})
