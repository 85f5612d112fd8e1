import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createLog, createServer } from '@impresario/server'
import { createWorker } from '@impresario/worker'
import type { WorkerOptions } from '@impresario/worker'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { newStorageUrl } from './servers/storage-ground.ts'

/* The worker SDK against the real server: what each of the two promises alone must also fit the other. */

const TOKEN = 'hand-token-5d21f0c4e8'

const one = blueprint('one', { start: 'work' }, (state) => ({
  work: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 't', params: { n: 1 }, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

let directory = ''
const cleanUp: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-sdk-'))
})
afterEach(async () => {
  for (const clean of cleanUp.splice(0).toReversed()) await clean()
  await rm(directory, { recursive: true, force: true })
})

async function startServer(workers: string) {
  const workersConfigPath = join(directory, 'workers.toml')
  await writeFile(workersConfigPath, workers)
  const server = createServer({
    blueprints: [one],
    log: createLog({ level: 'error', format: 'text', timeZone: 'UTC', instance: 'one' }),
    settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: newStorageUrl(), workersConfigPath },
  })
  const { address } = await server.start()
  cleanUp.push(() => server.stop())
  return { address, client: createClient({ url: address }) }
}

function makeWorker(options: WorkerOptions) {
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const worker = createWorker({ id: 'hand', token: TOKEN, shutdownMs: 0, log, ...options })
  cleanUp.push(() => worker.stop())
  return worker
}

test.for([
  ['alone', '', {}],
  ['with short-lived tokens', '', { sts: true }],
  ['signed', 'signed = true\n', { signing: true }],
  ['signed, one call at a time', 'signed = true\n', { signing: true, mode: 'single' }],
  ['with a socket', '', { webSockets: true }],
  ['with all of it', 'signed = true\n', { signing: true, sts: true, webSockets: true }],
] as const)('[E-05] a worker of the SDK works for the server: %s', async ([, more, options]) => {
  const { address, client } = await startServer(`[hand]\ntoken = "${TOKEN}"\n${more}`)
  const worker = makeWorker({ url: address, ...options }).task('t', async (params, task) => {
    task.progress(0.5, 'half')
    await task.sendEvent('found', { n: 1 })
    return params
  })
  await worker.start()
  const job = await client.start('one', {})
  expect(await job.result()).toMatchObject({ n: 1 })
})

test('[E-04] [J-15] a job that is cancelled reaches its worker over the socket, long before its next heartbeat', async () => {
  const { address, client } = await startServer(`[hand]\ntoken = "${TOKEN}"\n`)
  const reasons: unknown[] = []
  const lines: string[] = []
  const say = (message: string): void => {
    lines.push(message)
  }
  const log = { debug: say, info: say, warn: say, error: say }
  let begun = false
  const worker = makeWorker({ url: address, webSockets: true, mode: 'single', heartbeatMs: 600_000, log }).task(
    't',
    async (_params, { signal }) => {
      begun = true
      await new Promise<void>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason)
          reject(new Error('stopped'))
        })
      })
    },
  )
  await worker.start()
  await expect.poll(() => lines).toContain('The socket is open.')
  const job = await client.start('one', {})
  await expect.poll(() => begun).toBe(true)
  await job.cancel()
  await expect.poll(() => reasons).toMatchObject([{ reason: 'cancelled' }])
})
