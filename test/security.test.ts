import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createLog, createServer } from '@impresario/server'
import { createWorker } from '@impresario/worker'
import { afterEach, beforeEach, expect, test } from 'vitest'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-security-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

const CLIENT = 'client-token-2f8c1e'
const WORKER = 'worker-token-93ab07'

/** Shows what its client has been configured with. */
const mirror = blueprint('mirror', { start: 'look' }, (state) => ({
  look: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'mirror', params: { client: context.client }, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

async function runOneJob(lines: string[]): Promise<unknown> {
  const clientsConfigPath = join(directory, 'clients.toml')
  const workersConfigPath = join(directory, 'workers.toml')
  await writeFile(clientsConfigPath, `[studio]\ntoken = "${CLIENT}"\nplan = "gold"\nlanguages = ["en", "ru"]\n`)
  await writeFile(workersConfigPath, `[hand]\ntoken = "${WORKER}"\n`)
  const destination = {
    write: (line: string): void => {
      lines.push(line)
    },
  }
  const server = createServer({
    blueprints: [mirror],
    log: createLog({ level: 'debug', format: 'json', timeZone: 'UTC', instance: 'one', destination }),
    settings: {
      apiHost: '127.0.0.1',
      apiPort: 0,
      storageUrl: `file:${join(directory, 'data')}`,
      clientsConfigPath,
      workersConfigPath,
    },
  })
  const { address } = await server.start()
  const worker = createWorker({ url: address, token: WORKER, id: 'hand' }).task('mirror', (params) => params)
  try {
    await worker.start()
    const job = await createClient({ url: address, token: CLIENT }).start('mirror', {})
    const wrong = createClient({ url: address, token: `${CLIENT}x`, retries: 0 })
    await expect(wrong.job(job.id).status()).rejects.toThrow('Unauthorized')
    return await job.result()
  } finally {
    await worker.stop()
    await server.stop()
  }
}

test('[H-02] [H-08] clients and workers come from their files, and their tokens are in no log and in no data file', async () => {
  const lines: string[] = []
  const result = await runOneJob(lines)
  expect(result).toEqual({ client: { id: 'studio', plan: 'gold', params: { languages: ['en', 'ru'] } } })
  const files = await readdir(join(directory, 'data'))
  const contents = await Promise.all(files.map((name) => readFile(join(directory, 'data', name), 'latin1')))
  expect(contents.some((text) => text.includes('gold'))).toBe(true)
  expect(lines.some((line) => line.includes('listening'))).toBe(true)
  for (const text of [...lines, ...contents]) {
    expect(text).not.toContain(CLIENT)
    expect(text).not.toContain(WORKER)
  }
})

test('[H-02] a bad file stops the start with its path, the key and the reason, and gives no token away', async () => {
  const path = join(directory, 'clients.toml')
  await writeFile(path, `[studio]\ntoken = "${CLIENT}"\n[other]\ntoken = "${CLIENT}"\n`)
  const start = (): unknown => createServer({ settings: { storageUrl: 'memory:', clientsConfigPath: path } })
  expect(start).toThrow(`${path}: [other].token is the same as ${path}: [studio].token`)
  expect(start).not.toThrow(CLIENT)
})
