import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint, child } from '@impresario/core'
import type { Job } from '@impresario/core'
import { JobValues, openStore } from '@impresario/files'
import { isJsonObject } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { createMemoryStorage } from '@impresario/storage-embedded'
import { createWorker } from '@impresario/worker'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { Metrics } from '../metrics/metrics.ts'
import { createOrchestrator } from '../orchestrator.ts'
import type { Orchestrator } from '../orchestrator.ts'
import { SILENT } from '../runtime/log.ts'
import { OffloadingStorage } from './offloading-storage.ts'

let filesDir = ''
beforeEach(async () => {
  filesDir = await mkdtemp(join(tmpdir(), 'impresario-offload-'))
})
afterEach(async () => rm(filesDir, { recursive: true, force: true }))

const OFFLOAD_BYTES = 2_048
/** About 30 kB. */
const large = (mark: string) => ({ mark, rows: Array.from({ length: 2_000 }, (_unused, index) => `${mark} ${index}`) })

const inner = blueprint('inner', { start: 'echo' }, (state) => ({
  echo: state.handler((context, actions) => actions.transitionTo('done', { echoed: context.initialData })),
  done: state.end(),
}))
function copiedIn({ stateHistory }: { readonly stateHistory: Readonly<Record<string, unknown>> }): JsonObject {
  const { copied } = stateHistory
  return isJsonObject(copied) ? { copied } : {}
}

const outer = blueprint('outer', { start: 'send' }, (state) => ({
  send: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'copy', params: context.initialData, transitions: { success: 'ask' } }),
  ),
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { approved: 'split', rejected: 'failed' } }),
  ),
  split: state.handler((context, actions) =>
    actions.dispatchParallel([{ type: 'copy', params: copiedIn(context) }, child('inner', large('child'))], {
      into: 'join',
    }),
  ),
  join: state.aggregator((context, actions) =>
    actions.transitionTo('done', { all: Object.values(context.aggregationResults).map(({ data }) => data ?? null) }),
  ),
  done: state.end(),
}))

async function start(storageUrl: string): Promise<Orchestrator> {
  const orchestrator = createOrchestrator({
    blueprints: [inner, outer],
    settings: { storageUrl, filesDir, offloadBytes: OFFLOAD_BYTES, logLevel: 'silent' },
  })
  await orchestrator.start()
  onTestFinished(() => orchestrator.stop())
  return orchestrator
}

test('[J-01] large data of jobs is kept in the store, and handlers, workers and clients see it whole, after a restart too', async () => {
  const storageUrl = newStorageUrl()
  let orchestrator = await start(storageUrl)
  const seen: unknown[] = []
  const workers = async () => {
    const worker = createWorker({ transport: orchestrator.localTransport() })
    worker.task('copy', (params) => {
      seen.push(params)
      return { copied: params }
    })
    await worker.start()
    return worker
  }
  let worker = await workers()
  const data = large('given')
  const started = await orchestrator.client().start('outer', data)
  await expect.poll(async () => (await started.status()).status).toBe('waiting_for_human')
  const kept = await orchestrator.parts.fileService.store?.list(`values/${started.id}/`)
  // The initial data, the params and the result are the same, and are kept once.
  expect(kept?.files).toHaveLength(1)
  expect(
    (
      await orchestrator
        .client()
        .list({ fields: ['initialData'] })
        .all()
    )[0]?.initialData,
  ).toEqual(data)
  expect((await orchestrator.client().list().all())[0]?.omittedFields).toContain('initialData')
  if (!storageUrl.startsWith('memory:')) {
    await worker.stop()
    await orchestrator.stop()
    orchestrator = await start(storageUrl)
    worker = await workers()
  }
  const job = orchestrator.client().job(started.id)
  await job.approve('approved')
  expect(await job.result()).toMatchObject({
    copied: data,
    all: [{ copied: { copied: data } }, { echoed: large('child') }],
  })
  expect(seen).toEqual([data, { copied: data }])
  expect((await job.status()).initialData).toEqual(data)
  expect(await job.files.list()).toEqual([])
  await worker.stop()
})

function lengthsIn({ stateHistory }: { readonly stateHistory: Readonly<Record<string, unknown>> }): number[] {
  return ['one', 'two'].map((key) => String(stateHistory[key]).length)
}

/** Each result would fit alone; together with what is there it does not. */
const growing = blueprint('growing', { start: 'first' }, (state) => ({
  first: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'grow', params: { key: 'one', bytes: 200_000 }, transitions: { success: 'second' } }),
  ),
  second: state.handler((context, actions) =>
    actions.dispatchTask({
      type: 'grow',
      params: { key: 'two', bytes: Number(context.initialData['bytes']) },
      transitions: { success: 'third' },
    }),
  ),
  third: state.handler((context, actions) => actions.transitionTo('done', { lengths: lengthsIn(context) })),
  done: state.end(),
}))

test('[J-01] a result that makes the state history too large for a record is kept in the store, and the job goes on', async () => {
  const orchestrator = createOrchestrator({
    blueprints: [growing],
    settings: { storageUrl: newStorageUrl(), filesDir, logLevel: 'silent' },
  })
  await orchestrator.start()
  onTestFinished(() => orchestrator.stop())
  const worker = createWorker({ transport: orchestrator.localTransport() })
  worker.task('grow', ({ key, bytes }) => ({ [key === 'one' ? 'one' : 'two']: 'x'.repeat(Number(bytes)) }))
  await worker.start()
  onTestFinished(() => worker.stop())
  const client = orchestrator.client()
  for (const bytes of [150_000, 600_000]) {
    const job = await client.start('growing', { bytes })
    expect(await job.result()).toMatchObject({ lengths: [200_000, bytes] })
    const kept = await orchestrator.parts.fileService.store?.list(`values/${job.id}/`)
    expect(kept?.files).toHaveLength(1)
  }
  const tooLarge = await client.start('growing', { bytes: 4_200_000 })
  await expect.poll(async () => (await tooLarge.status()).status).toMatch(/quarantined|failed/)
})

function sample(id: string, more: Partial<Job> = {}): Job {
  return {
    id,
    blueprint: 'b',
    blueprintVersion: 1,
    client: { id: 'c' },
    status: 'running',
    state: 's',
    visit: 1,
    failures: 0,
    initialData: large('initial'),
    stateHistory: { ['__proto__']: 1, small: 1 },
    branches: {},
    priority: 0,
    depth: 0,
    trail: [],
    createdAt: 1,
    updatedAt: 1,
    ...more,
  }
}

test('[J-01] a record has the size and the hash of what was taken out of it, and each value is written once', async () => {
  const records = createMemoryStorage({ now: () => 1 })
  const store = await openStore({ concurrencyMax: 10, bucket: 'b', directory: filesDir })
  const metrics = new Metrics()
  const base = { storage: records, bytesMin: OFFLOAD_BYTES, log: SILENT, metrics }
  const storage = new OffloadingStorage({ ...base, values: () => new JobValues(store) })
  const job = sample('one', { stateHistory: JSON.parse('{"__proto__": {"a": 1}, "small": 1}') as Job['stateHistory'] })
  await storage.commit({ put: [{ kind: 'job', id: 'one', value: job, version: 1 }] })
  await storage.commit({ put: [{ kind: 'job', id: 'one', value: { ...job, state: 't' }, version: 2 }] })
  const raw = JSON.stringify((await records.read('job', 'one'))?.value)
  expect(raw.length).toBeLessThan(OFFLOAD_BYTES)
  expect(raw).toMatch(/"offloaded":\[\{"path":\["initialData"\],"sha256":"[\da-f]{64}","bytes":\d+\}\]/)
  expect((await storage.read('job', 'one'))?.value).toEqual({ ...job, state: 't' })
  expect(metrics.text()).toContain('impresario_values_offloaded_total{status="ok"} 1')

  const again = new OffloadingStorage({ ...base, values: () => new JobValues(store) })
  const page = await again.list('job', { limit: 10 })
  expect(page.map(({ value }) => value)).toEqual([{ ...job, state: 't' }])
  const { files } = await store.list('values/one/')
  await store.delete(files.map(({ key }) => key))
  await expect(again.read('job', 'one')).rejects.toThrow('A part of job one is missing in the store of files')
})

test('[J-01] a store that fails keeps nothing from being written, and pages are as long as they were', async () => {
  const records = createMemoryStorage({ now: () => 1 })
  const store = await openStore({ concurrencyMax: 10, bucket: 'b', directory: filesDir })
  const metrics = new Metrics()
  const base = { storage: records, bytesMin: OFFLOAD_BYTES, log: SILENT, metrics }
  const broken = { ...base, values: () => new JobValues({ ...store, put: () => Promise.reject(new Error('full')) }) }
  await new OffloadingStorage(broken).commit({
    put: [{ kind: 'job', id: 'inline', value: sample('inline'), version: 1 }],
  })
  expect((await records.read('job', 'inline'))?.value.initialData).toEqual(large('initial'))
  expect(metrics.text()).toContain('impresario_values_offloaded_total{status="error"} 1')
  const storage = new OffloadingStorage({ ...base, values: () => new JobValues(store) })
  for (const id of ['a', 'b', 'c']) {
    await storage.commit({ put: [{ kind: 'job', id, value: sample(id), version: 1 }] })
  }
  const page = await storage.list('job', { limit: 10, before: 'd', bytesMax: 40_000 })
  expect([page.map(({ id }) => id), page.next]).toEqual([['c', 'b'], 'b'])
})

test('[J-03] values of jobs that are gone are removed, and those of a job that is being created are not', async () => {
  const orchestrator = await start(newStorageUrl())
  const { fileService, fileJanitor } = orchestrator.parts
  await fileService.values?.put('gone', '"a value"')
  expect(await fileJanitor.sweep()).toBe(0)
  const later = Date.now() + 7_200_000
  vi.spyOn(Date, 'now').mockReturnValue(later)
  onTestFinished(() => {
    vi.restoreAllMocks()
  })
  expect(await fileJanitor.sweep()).toBe(1)
  expect((await fileService.store?.list('values/'))?.files).toEqual([])
})
