import { randomBytes } from 'node:crypto'
import { access, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createLog, createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { createWorker } from '@impresario/worker'
import type { UntypedHandler } from '@impresario/worker'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newStorageUrl } from './servers/storage-ground.ts'

/* Files on their way from a client through the server to a worker and back, with nothing in between replaced. */

const TOKEN = 'hand-token-5d21f0c4e8'

/** A person says when the files are there; then a worker gets them. */
const convert = blueprint('convert', { start: 'wait', backoffMs: 1, taskAttemptsMax: 1 }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Are the files there?', transitions: { approved: 'work' } }),
  ),
  work: state.handler((context, actions) =>
    actions.dispatchTask({
      type: 't',
      params: {
        ...context.initialData,
        ...(context.initialData['isFolder'] === true
          ? { folder: `s3://impresario-files/jobs/${context.jobId}/in/` }
          : {}),
        source: context.initialData['source'] ?? `s3://impresario-files/jobs/${context.jobId}/in/source.bin`,
      },
      transitions: { success: 'done', failure: 'failed' },
    }),
  ),
  done: state.end({ result: ({ stateHistory }) => stateHistory as unknown }),
  failed: state.end(),
}))

let directory = ''
let payloadDir = ''
let server: Server
let address = ''
const cleanUp: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-task-files-'))
  payloadDir = join(directory, 'payloads')
  const clientsConfigPath = join(directory, 'clients.toml')
  await writeFile(clientsConfigPath, '[alpha]\ntoken = "alpha-token-99"\n[beta]\ntoken = "beta-token-98"\n')
  server = createServer({
    blueprints: [convert],
    log: createLog({ level: 'error', format: 'text', timeZone: 'UTC', instance: 'one' }),
    settings: {
      apiHost: '127.0.0.1',
      apiPort: 0,
      storageUrl: newStorageUrl(),
      workerToken: TOKEN,
      clientsConfigPath,
      filesDir: join(directory, 'files'),
    },
  })
  address = (await server.start()).address
})
afterEach(async () => {
  for (const clean of cleanUp.splice(0).toReversed()) await clean()
  await server.stop()
  await rm(directory, { recursive: true, force: true })
})

async function startWorker(kind: 'http' | 'local', handler: UntypedHandler): Promise<void> {
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const way = kind === 'http' ? { url: address, token: TOKEN } : { transport: server.localTransport() }
  const worker = createWorker({ ...way, id: 'hand', shutdownMs: 0, log, payloadDir }).task('t', handler)
  cleanUp.push(() => worker.stop())
  await worker.start()
}

const as = (token: string) => createClient({ url: address, token })

async function newJob(data: object = {}, token = 'alpha-token-99'): Promise<string> {
  const { id } = await as(token).start('convert', { ...data })
  return id
}

async function put(jobId: string, name: string, body: BodyInit, token = 'alpha-token-99'): Promise<void> {
  const path = `/api/v1/jobs/${jobId}/files/content/${encodeURIComponent(name)}`
  const answer = await fetch(`${address}${path}`, { method: 'PUT', body, headers: { 'x-client-token': token } })
  expect(answer.status).toBe(200)
}

async function read(uri: string): Promise<Buffer> {
  const [, jobId = '', name = ''] = /jobs\/([^/]+)\/(.*)$/.exec(uri) ?? []
  const path = `/api/v1/jobs/${jobId}/files/content/${encodeURIComponent(name)}`
  const answer = await fetch(`${address}${path}`, { headers: { 'x-client-token': 'alpha-token-99' } })
  return Buffer.from(await answer.arrayBuffer())
}

async function ended(jobId: string, token = 'alpha-token-99'): Promise<Readonly<Record<string, unknown>>> {
  const decide = async (): Promise<number> => {
    const path = `/_public/webhooks/approval/${jobId}`
    const headers = { 'x-client-token': token, 'content-type': 'application/json' }
    return (await fetch(`${address}${path}`, { method: 'POST', headers, body: '{"decision":"approved"}' })).status
  }
  await expect.poll(decide).toBe(200)
  const look = async (): Promise<Readonly<Record<string, unknown>>> => {
    const answer = await fetch(`${address}/api/v1/jobs/${jobId}`, { headers: { 'x-client-token': token } })
    return (await answer.json()) as Record<string, unknown>
  }
  await expect.poll(async () => String((await look())['status'])).toMatch(/^(?:finished|failed|quarantined)$/)
  return look()
}

describe.each(['http', 'local'] as const)('files of tasks (%s)', (kind) => {
  test('[J-05] [J-04] params that name files are local paths, returned paths are files of the job', async () => {
    const content = randomBytes(3_000_000)
    let seen = ''
    await startWorker(kind, async (params, task) => {
      seen = params['source'] as string
      const bytes = await readFile(seen)
      const target = join(await task.files.directory(), 'out', 'reversed.bin')
      await mkdir(join(target, '..'), { recursive: true })
      await writeFile(target, bytes.reverse())
      const { uri } = await task.files.writeJson('out/facts.json', { bytes: bytes.length })
      expect(await task.files.readJson('out/facts.json')).toEqual({ bytes: 3_000_000 })
      const names = (await task.files.list()).map(({ name }) => name)
      return { target, facts: uri, names, elsewhere: '/etc/hostname' }
    })
    const jobId = await newJob()
    await put(jobId, 'in/source.bin', content)
    const job = await ended(jobId)
    expect(job['status']).toBe('finished')
    const result = job['result'] as Record<string, unknown>
    expect(seen.startsWith(payloadDir)).toBe(true)
    expect(result['target']).toBe(`s3://impresario-files/jobs/${jobId}/out/reversed.bin`)
    expect(result['names']).toEqual(['in/source.bin', 'out/facts.json'])
    // A text that is a path elsewhere is a text.
    expect(result['elsewhere']).toBe('/etc/hostname')
    expect(Buffer.compare(await read(String(result['target'])), Buffer.from(content).reverse())).toBe(0)
    await expect.poll(async () => readdir(payloadDir)).toEqual([])
    await expect(access(seen)).rejects.toThrow('ENOENT')
  })

  test('[J-05] what lies outside of the directory of the task is refused, also behind a link', async () => {
    await writeFile(join(directory, 'secret'), 'private')
    const failures: string[] = []
    await startWorker(kind, async (_params, task) => {
      const own = await task.files.directory()
      for (const path of [join(directory, 'secret'), '/etc/hostname', '../../secret']) {
        await task.files.upload(path, 'stolen').catch((error: unknown) => failures.push(String(error)))
      }
      await symlink(join(directory, 'secret'), join(own, 'link'))
      return { stolen: join(own, 'link') }
    })
    const jobId = await newJob({ source: 'none' })
    const job = await ended(jobId)
    expect(failures).toHaveLength(3)
    expect(failures.every((failure) => failure.includes('outside of the directory'))).toBe(true)
    expect(job['status']).not.toBe('finished')
    expect(JSON.stringify(job)).toContain('outside of the directory')
    expect(
      await readdir(join(directory, 'files')).then(
        (names) => names.includes('jobs+'),
        () => false,
      ),
    ).toBe(false)
  })

  test('[J-05] no address in the params leads out of the directory of the task, and nothing is made there', async () => {
    const seen: unknown[] = []
    await startWorker(kind, async (params) => {
      seen.push(params['source'])
      return {}
    })
    const base = 's3://impresario-files/jobs/any'
    for (const rest of ['../../outside/', 'in/../../../outside/', '/', '../../outside/file', 'a//b/']) {
      const job = await ended(await newJob({ source: `${base}/${rest}` }))
      expect([rest, job['status'], seen]).toEqual([rest, 'failed', []])
      await expect(access(join(directory, 'outside'))).rejects.toThrow('ENOENT')
      expect(JSON.stringify(job)).toContain('The name of a file')
    }
  })

  test('[J-05] an address that ends with a slash is a folder with everything below it', async () => {
    let seen: readonly string[] = []
    await startWorker(kind, async (params) => {
      seen = (await readdir(params['folder'] as string, { recursive: true })).toSorted()
      return {}
    })
    const jobId = await newJob({ source: 'none', isFolder: true })
    await put(jobId, 'in/a.txt', 'a')
    await put(jobId, 'in/deep/b.txt', 'b')
    await put(jobId, 'other.txt', 'c')
    expect((await ended(jobId))['status']).toBe('finished')
    expect(seen).toEqual(['a.txt', 'deep', 'deep/b.txt'])
  })

  test('[J-05] files of other clients are not found, those of the own client are; other addresses stay as they are', async () => {
    const seen: unknown[] = []
    await startWorker(kind, async (params) => {
      seen.push(params['source'])
      return { text: await readFile(params['source'] as string, 'utf8').catch(() => 'no file') }
    })
    const theirs = await newJob({}, 'beta-token-98')
    await put(theirs, 'secret.txt', 'of beta', 'beta-token-98')
    const thief = await ended(await newJob({ source: `s3://impresario-files/jobs/${theirs}/secret.txt` }))
    expect(thief['status']).not.toBe('finished')
    expect(seen).toEqual([])
    const first = await newJob()
    await put(first, 'shared.txt', 'of alpha')
    const second = await ended(await newJob({ source: `s3://impresario-files/jobs/${first}/shared.txt` }))
    expect(second['result']).toMatchObject({ text: 'of alpha' })
    await ended(await newJob({ source: 's3://another-bucket/data.bin' }))
    expect(seen.at(-1)).toBe('s3://another-bucket/data.bin')
  })
})

test('[J-05] who does not have the task gets no file of its job', async () => {
  const jobId = await newJob()
  await put(jobId, 'a.txt', 'private')
  const headers = { 'x-worker-token': TOKEN, 'x-worker-id': 'hand' }
  for (const taskId of [`${jobId}.1.main.1.1`, jobId, '../x', `${jobId}.0.main.1.zz`]) {
    const path = `/_worker/tasks/${encodeURIComponent(taskId)}/files`
    expect((await fetch(`${address}${path}`, { headers })).status).toBe(404)
    expect((await fetch(`${address}${path}/content?name=a.txt`, { headers })).status).toBe(404)
    const sent = await fetch(`${address}${path}/content?name=b.txt`, { method: 'PUT', body: 'x', headers })
    expect(sent.status).toBe(404)
  }
})
