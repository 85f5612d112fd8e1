import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Answer, TestServer } from '../server.fixture.ts'
import { Backends, BACKENDS, Cluster, until, withoutSafetyNet } from './cluster.fixture.ts'

const backends = new Backends()
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-reload-all-'))
  await backends.start()
}, 300_000)
afterAll(async () => {
  await backends.stop()
  await rm(folder, { recursive: true, force: true })
})

const ROOT = '[root]\ntoken = "token-of-root"\nrole = "admin"\n'
const as = (token: string): { headers: Record<string, string> } => ({ headers: { 'x-client-token': token } })
const statusAs = async (server: TestServer, token: string): Promise<number> =>
  (await server.call('GET', '/api/v1/jobs', as(token))).status

test.each(BACKENDS)(
  '[H-02] [I-01] a reload at one instance reaches the others on one %s, each with its own files',
  async (name) => {
    const cluster = new Cluster(backends.address(name))
    onTestFinished(() => cluster.stop())
    const files = ['a', 'b', 'c'].map((one) => join(folder, `${name}-${one}.toml`))
    for (const clientsConfigPath of files) {
      await writeFile(clientsConfigPath, `${ROOT}[shop]\ntoken = "token-of-shop"\n`)
      await cluster.add({ clock: withoutSafetyNet(), settings: { clientsConfigPath, clientToken: '' } })
    }
    const [first, second, third] = cluster.servers as [TestServer, TestServer, TestServer]
    const [fileA = '', fileB = '', fileC = ''] = files
    await writeFile(fileA, `${ROOT}[mall]\ntoken = "token-of-mall"\n`)
    await writeFile(fileB, `${ROOT}[mall]\ntoken = "token-of-mall"\n`)
    // One machine whose file is wrong keeps what it had.
    await writeFile(fileC, '')
    const reload = (server: TestServer): Promise<Answer> =>
      server.call('POST', '/api/v1/admin/reload', { ...as('token-of-root'), body: {} })
    expect(await reload(first)).toMatchObject({ status: 200, body: { clients: 2, scope: 'all_instances' } })
    await until(async () => (await statusAs(second, 'token-of-mall')) === 200)
    expect(await statusAs(second, 'token-of-shop')).toBe(401)
    expect(await statusAs(third, 'token-of-shop')).toBe(200)
    // Asked itself, it says what is wrong, and the others are left alone.
    expect(await reload(third)).toMatchObject({ status: 400 })
    await writeFile(fileC, `${ROOT}[mall]\ntoken = "token-of-mall"\n`)
    expect((await reload(second)).status).toBe(200)
    await until(async () => (await statusAs(third, 'token-of-mall')) === 200)
  },
  60_000,
)
