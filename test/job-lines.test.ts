import { blueprint } from '@impresario/core'
import type { LogFields } from '@impresario/core'
import { createClient } from '@impresario/client'
import { LIMITS } from '@impresario/protocol'
import { createLog, createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { createWorker } from '@impresario/worker'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { newStorageUrl } from './servers/storage-ground.ts'

/* What handlers and workers write about a job: from `context.log` and `task.log` to the client. */

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

const talk = blueprint('talk', { start: 'ask' }, (state) => ({
  ask: state.handler((context, actions) => {
    context.log.info('asking', { question: context.initialData['question'] ?? null })
    return actions.dispatchTask({ type: 'answer', params: {}, transitions: { success: 'close', failure: 'close' } })
  }),
  close: state.handler((context, actions) => {
    context.log.warn('closing')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))
const chatter = blueprint('chatter', { start: 'talk' }, (state) => ({
  talk: state.handler((context, actions) => {
    for (let index = 0; index < 1_000; index += 1) context.log.debug(`line ${index} ${'x'.repeat(2_000)}`)
    const ring: Record<string, unknown> = {}
    ring['self'] = ring
    context.log.info('odd', ring)
    context.log.info('last', { large: 'y'.repeat(10_000) })
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

const written: { readonly message: string; readonly fields: LogFields }[] = []
let server: Server
let url = ''
let worker: ReturnType<typeof createWorker>
const ofWorker: LogFields[] = []

beforeAll(async () => {
  const write = (message: string, fields: LogFields = {}): void => {
    written.push({ message, fields })
  }
  const settings = { apiHost: '127.0.0.1', apiPort: 0, storageUrl: newStorageUrl() }
  server = createServer({ blueprints: [talk, chatter], log: { ...SILENT, info: write, warn: write }, settings })
  url = (await server.start()).address
  const info = (_message: string, fields: LogFields = {}): void => {
    ofWorker.push(fields)
  }
  worker = createWorker({ url, id: 'hand', shutdownMs: 0, log: { ...SILENT, info } }).task(
    'answer',
    (_params, task) => {
      task.log.info('thinking', { depth: 3 })
      for (let index = 0; index < 200; index += 1) task.log.debug(`step ${index}`)
      return {}
    },
  )
  await worker.start()
})
afterAll(async () => {
  await worker?.stop()
  await server?.stop()
})

test('[I-05] lines of handlers and workers carry their ids, and are kept with the job', async () => {
  for (const client of [createClient({ url }), server.client()]) {
    const job = await client.start('talk', { question: 'why' })
    await job.wait()
    // The job may end before the answer to the worker's result, with which its lines are kept.
    const lines = await vi.waitUntil(async () => {
      const found = await job.log()
      return found.some(({ source }) => source === 'worker') ? found : undefined
    })
    expect(lines[0]).toMatchObject({
      level: 'info',
      message: 'asking',
      source: 'handler',
      state: 'ask',
      fields: { question: 'why' },
    })
    expect(lines.at(-1)).toMatchObject({ level: 'warn', message: 'closing', source: 'handler', state: 'close' })
    const steps = lines.filter(({ source }) => source === 'worker')
    expect(steps).toHaveLength(LIMITS.taskLogLinesMax)
    expect(steps.at(-1)).toMatchObject({ message: 'step 199', workerId: 'hand', taskId: expect.any(String) as unknown })
    expect(written.find(({ fields }) => fields['job_id'] === job.id)).toMatchObject({
      message: 'asking',
      fields: { blueprint: 'talk', state: 'ask', question: 'why' },
    })
    const shown = { job_id: job.id, type: 'answer', depth: 3, task_id: expect.any(String) as unknown }
    expect(ofWorker).toContainEqual(shown)
  }
})

test('[I-05] the lines of a job are bounded in number and bytes; what is no JSON is left out', async () => {
  const job = await createClient({ url }).start('chatter', {})
  await job.wait()
  const lines = await job.log()
  expect(lines.length).toBeLessThanOrEqual(LIMITS.jobLogLinesMax)
  expect(lines.length).toBeGreaterThan(10)
  expect(Buffer.byteLength(JSON.stringify(lines))).toBeLessThan(LIMITS.jobLogBytesMax + 1_024)
  expect(lines.slice(-2)).toMatchObject([{ message: 'odd' }, { message: 'last' }])
  expect(lines.slice(-2).every(({ fields }) => fields === undefined)).toBe(true)
})

test('[I-05] the log of a job belongs to its client', async () => {
  const job = await server.client({ id: 'one' }).start('talk', {})
  await expect(server.client({ id: 'two' }).job(job.id).log()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
})

test('[I-05] an admin changes the level of the log while the server runs', async () => {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLog({ level: 'error', format: 'json', timeZone: 'UTC', instance: 'one', destination })
  const settings = { apiHost: '127.0.0.1', apiPort: 0, storageUrl: newStorageUrl() }
  const quiet = createServer({ blueprints: [chatter], log, settings })
  const { address } = await quiet.start()
  try {
    const client = quiet.client({ role: 'admin' })
    expect(lines).toEqual([])
    expect(await client.admin.setLogLevel('debug')).toEqual({ level: 'debug', before: 'error' })
    await (await client.start('chatter', {})).wait()
    expect(lines.some((line) => line.includes('"job_created"'))).toBe(true)
    const open = createClient({ url: address })
    expect(await open.admin.setLogLevel('silent')).toEqual({ level: 'silent', before: 'debug' })
    await expect(open.admin.setLogLevel('loud')).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    const [viewer, count] = [quiet.client({ role: 'client' }), lines.length]
    await expect(viewer.admin.setLogLevel('debug')).rejects.toMatchObject({ code: 'FORBIDDEN' })
    await (await client.start('chatter', {})).wait()
    expect(lines).toHaveLength(count)
  } finally {
    await quiet.stop()
  }
})
