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

/** Shows the configuration that its client received. */
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
  const start = (): unknown =>
    createServer({ settings: { apiHost: '127.0.0.1', storageUrl: 'memory:', clientsConfigPath: path } })
  expect(start).toThrow(`${path}: [other].token is the same as ${path}: [studio].token`)
  expect(start).not.toThrow(CLIENT)
})

/** Texts that occur nowhere else: if one of them appears, a secret has leaked. */
const CANARIES = {
  client: 'canary-client-7f3a9d21c4',
  rotated: 'canary-rotated-55e0b8f6aa',
  worker: 'canary-worker-0d92c7e13b',
  signer: 'canary-signer-c81f4a6e90',
  global: 'canary-global-3b6d05f7e2',
  wrong: 'canary-wrong-e94c2a7b1d',
}

/** Everything that a server outputs to anyone: its log and its responses. */
async function listenTo(said: string[]): Promise<void> {
  const clientsConfigPath = join(directory, 'clients.toml')
  const workersConfigPath = join(directory, 'workers.toml')
  await writeFile(clientsConfigPath, `[a]\ntokens = ["${CANARIES.client}", "${CANARIES.rotated}"]\nrole = "admin"\n`)
  await writeFile(
    workersConfigPath,
    `[w]\ntoken = "${CANARIES.worker}"\n[s]\ntoken = "${CANARIES.signer}"\nsigned = true\n`,
  )
  const destination = { write: (line: string): unknown => said.push(line) }
  const server = createServer({
    blueprints: [mirror],
    log: createLog({ level: 'debug', format: 'json', timeZone: 'UTC', instance: 'one', destination }),
    settings: {
      apiHost: '127.0.0.1',
      apiPort: 0,
      storageUrl: 'memory:',
      clientsConfigPath,
      workersConfigPath,
      workerToken: CANARIES.global,
    },
  })
  const { address } = await server.start()
  const shown: readonly Readonly<Record<string, string>>[] = [
    { 'x-client-token': CANARIES.client, 'x-worker-token': CANARIES.worker, 'x-worker-id': 'w' },
    { 'x-client-token': CANARIES.rotated, 'x-worker-token': CANARIES.signer, 'x-worker-id': 's' },
    { authorization: `Bearer ${CANARIES.wrong}` },
    { 'x-client-token': CANARIES.wrong, 'x-worker-token': CANARIES.wrong, 'x-worker-id': 'w' },
    { 'x-client-token': CANARIES.global, 'x-worker-token': CANARIES.global, 'x-worker-id': 'free' },
  ]
  try {
    for (const { method, url } of await server.routes()) {
      const path = url.replaceAll(/:(\w+)|\*/g, 'some-id')
      const answers = shown.map(async (headers) => {
        const body =
          method === 'GET' || method === 'HEAD' ? {} : { body: '{"limit":1,"timeout":0,"blueprint":"mirror"}' }
        const type = 'body' in body ? { 'content-type': 'application/json' } : {}
        const answer = await fetch(`${address}${path}?timeout=0&wait=0`, {
          method,
          headers: { ...headers, ...type },
          redirect: 'manual',
          ...body,
        })
        said.push(`${method} ${path} ${answer.status}`, JSON.stringify([...answer.headers]), await answer.text())
      })
      await Promise.all(answers)
    }
    await writeFile(clientsConfigPath, `[a]\ntoken = "${CANARIES.client}"\n[b]\ntoken = "${CANARIES.client}"\n`)
    said.push(JSON.stringify(server.reloadCredentials()))
    await writeFile(clientsConfigPath, `[a]\ntoken = "${CANARIES.client}"\ntoken = "${CANARIES.client}"\n`)
    said.push(JSON.stringify(server.reloadCredentials()))
  } finally {
    await server.stop()
  }
}

test('[H-08] no token that is configured or sent is in any line of the log, in any answer or in any header', async () => {
  const said: string[] = []
  await listenTo(said)
  expect(said.filter((text) => text.endsWith(' 401')).length).toBeGreaterThan(50)
  expect(said.filter((text) => text.endsWith(' 200')).length).toBeGreaterThan(20)
  const leaks = said.filter((text) => Object.values(CANARIES).some((canary) => text.includes(canary)))
  expect(leaks).toEqual([])
})
