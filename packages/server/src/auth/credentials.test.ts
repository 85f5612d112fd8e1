import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ClientAuth } from './auth.ts'
import { settingsOf } from '../config/config.ts'
import { loadCredentials } from './credentials.ts'
import type { Credentials } from './credentials.ts'
import { hashToken, sameSecret } from '../runtime/secret.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-credentials-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

async function load(files: { clients?: string; workers?: string }, settings: object = {}): Promise<Credentials> {
  const { clients = '', workers = '' } = files
  await writeFile(join(directory, 'clients.toml'), clients)
  await writeFile(join(directory, 'workers.toml'), workers)
  return loadCredentials(
    settingsOf({
      apiHost: '127.0.0.1',
      clientsConfigPath: clients === '' ? '' : join(directory, 'clients.toml'),
      workersConfigPath: workers === '' ? '' : join(directory, 'workers.toml'),
      ...settings,
    }),
  )
}
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('clients.toml', () => {
  test('[H-02] a table has tokens or hashes of tokens, a role, a plan, a quota, and whatever else is for handlers', async () => {
    const { clients } = await load({
      clients: `
[plain]
token = "token-of-plain"
plan = "gold"
monthly_attempts = 10
files_max = 7
files_bytes_max = 0
role = "admin"
languages = ["en"]
since = 2026-01-02
[plain.params]
region = "eu"
[hashed]
token_sha256 = "${sha256('token-of-hashed')}"
role = "viewer"
[turning]
tokens = ["old-token", "new-token"]
tokens_sha256 = ["${sha256('hidden-token').toUpperCase()}"]
`,
    })
    expect(clients.map(({ client, role, monthlyAttempts }) => ({ client, role, monthlyAttempts }))).toEqual([
      {
        client: { id: 'plain', plan: 'gold', params: { languages: ['en'], since: '2026-01-02', region: 'eu' } },
        role: 'admin',
        monthlyAttempts: 10,
      },
      { client: { id: 'hashed' }, role: 'viewer', monthlyAttempts: undefined },
      { client: { id: 'turning' }, role: 'client', monthlyAttempts: undefined },
    ])
    expect(clients.map(({ filesMax, filesBytesMax }) => [filesMax, filesBytesMax])).toEqual([
      [7, 0],
      [undefined, undefined],
      [undefined, undefined],
    ])
    const auth = new ClientAuth(clients)
    const who = (token: string): string => auth.authenticate({ 'x-client-token': token }).client.id
    expect(['token-of-plain', 'token-of-hashed', 'old-token', 'new-token', 'hidden-token'].map(who)).toEqual([
      'plain',
      'hashed',
      'turning',
      'turning',
      'turning',
    ])
    expect(() => who(sha256('token-of-hashed'))).toThrow('Unauthorized')
    expect(JSON.stringify(clients)).not.toContain('token-of')
  })

  test('[H-03] the only client that there is may do everything; beside a file it is one of many', async () => {
    const alone = await load({}, { clientToken: 'only-client' })
    expect(alone.clients.map(({ role }) => role)).toEqual(['admin'])
    const beside = await load({ clients: '[a]\ntoken = "token-a"' }, { clientToken: 'another' })
    expect(beside.clients.map(({ role }) => role)).toEqual(['client', 'client'])
  })

  test.each([
    ['[a]\ntoken = "t"\nrole = "root"', '[a].role must be one of "viewer", "client", "admin"'],
    ['[a]\ntoken = "t"\nrol = "viewer"', '[a].rol is not known. Did you mean role?'],
    ['[a]\ntoken = "t"\nmonthly_atempts = 5', '[a].monthly_atempts is not known. Did you mean monthly_attempts?'],
    ['[a]\ntokn = "t"', '[a].tokn is not known. Did you mean token?'],
    ['[a]\ntoken_sha256 = "abc"', '[a].token_sha256 must be 64 hexadecimal digits'],
    ['[a]\ntokens = []', '[a].tokens must be a list of texts'],
    ['[a]\ntokens = ["good", 5]', '[a].tokens[1] must be a text'],
    ['[a]\ntoken = "two\\nlines"', '[a].token must be 1 to 1024 plain characters'],
    ['[a]\ntoken = "straße"', '[a].token must be 1 to 1024 plain characters'],
    ['[a]\ntoken = "t"\n[b]\ntokens = ["x", "t"]', '[b].tokens[1] is the same as'],
    [`[a]\ntoken = "t"\n[b]\ntoken_sha256 = "${sha256('t')}"`, '[b].token_sha256 is the same as'],
    ['[a]\ntokens = ["1","2","3","4","5","6","7","8","9"]', '[a] has 9 tokens'],
    ['[a]\ntoken = "t"\nfiles_max = -1', '[a].files_max must be a whole number from 0'],
    ['[a]\ntoken = "t"\nfiles_bytes_max = "1 GB"', '[a].files_bytes_max must be a whole number from 0'],
    ['[a]\ntoken = "t"\nmonthly_attempts = 1.5', '[a].monthly_attempts must be a whole number'],
    ['[a]', '[a].token is missing. Write a long random text, or its SHA-256'],
    ['[scheduler]\ntoken = "t"', '[scheduler] is reserved by the server'],
    ['[Scheduler]\ntoken = "t"', '[Scheduler] is reserved by the server'],
    ['["somebody with a link"]\ntoken = "t"', '[somebody with a link] is reserved by the server'],
  ])('[H-02] %j stops the start with file, table, key and what to do', async (clients, reason) => {
    await expect(load({ clients })).rejects.toThrow(`${join(directory, 'clients.toml')}: ${reason}`)
  })
})

describe('workers.toml', () => {
  const WORKERS = `
[own]
token = "token-of-own"
["cpu-*"]
token = "token-of-cpus"
["cpu-big-*"]
tokens = ["token-of-big-cpus"]
["pattern:gpu-*-eu"]
token = "token-of-gpus"
signed = true
description = "all of them"
`

  test('[H-02] [H-03] a table is for one id or for a pattern; the longest pattern counts; nobody falls through', async () => {
    const { workers } = await load({ workers: WORKERS }, { workerToken: 'token-of-all' })
    const accepts = (id: string): string[] =>
      ['own', 'cpus', 'big-cpus', 'gpus', 'all'].filter((name) => workers.accepts(id, hashToken(`token-of-${name}`)))
    expect(
      Object.fromEntries(
        ['own', 'cpu-1', 'cpu-', 'cpu-big-1', 'gpu-7-eu', 'gpu-7-us', 'xcpu-1', 'cpu'].map((id) => [id, accepts(id)]),
      ),
    ).toEqual({
      own: ['own'],
      'cpu-1': ['cpus'],
      'cpu-': ['cpus'],
      'cpu-big-1': ['big-cpus'],
      'gpu-7-eu': ['gpus'],
      'gpu-7-us': ['all'],
      'xcpu-1': ['all'],
      cpu: ['all'],
    })
    expect(workers.ownerOf(hashToken('token-of-own'))).toBe('own')
    expect(workers.ownerOf(hashToken('token-of-cpus'))).toBeUndefined()
    expect(workers.ownerOf(hashToken('token-of-all'))).toBeUndefined()
  })

  test('[H-08] the token itself is kept only where signatures need it', async () => {
    const { workers } = await load({ workers: WORKERS })
    expect(workers.tableOf('gpu-1-eu')?.signing).toEqual(['token-of-gpus'])
    expect(workers.tableOf('own')?.signing).toBeUndefined()
  })

  test.each([
    ['[w]\ntoken = "t"\ntokn = "x"', '[w].tokn is not known. Did you mean token?'],
    ['[w]\ntoken = "t"\ncolour = "x"', '[w].colour is not known. A worker has token, tokens, token_sha256'],
    ['[w]\ntoken = "t"\nsigned = "yes"', '[w].signed must be true or false'],
    [`[w]\ntoken_sha256 = "${sha256('t')}"\nsigned = true`, '[w].signed needs the token itself'],
    ['["a*b*c*d*"]\ntoken = "t"', '[a*b*c*d*] must have at most 3 "*"'],
    ['[w]\ntoken = "t"\ndescription = 5', '[w].description must be a text'],
  ])('[H-02] %j stops the start', async (workers, reason) => {
    await expect(load({ workers })).rejects.toThrow(`${join(directory, 'workers.toml')}: ${reason}`)
  })

  test('[H-02] no two parties may have the same token, whatever they are', async () => {
    const clients = '[a]\ntoken = "shared-token"'
    await expect(load({ clients, workers: '[w]\ntoken = "shared-token"' })).rejects.toThrow(
      /\[w\]\.token is the same as/,
    )
    await expect(load({ clients }, { workerToken: 'shared-token' })).rejects.toThrow(/WORKER_TOKEN is the same as/)
  })
})

describe('on an address that others can reach', () => {
  const LONG = 'z7Qm-41xkV0pWs9-Lr3'

  test('[H-08] tokens that are known to everybody or short enough to be guessed stop the start', async () => {
    const exposed = { apiHost: '0.0.0.0', clientToken: LONG }
    await expect(load({}, { ...exposed, clientToken: 'q7Rz0pLw3Xk9vTd' })).rejects.toThrow(
      /CLIENT_TOKEN has 15 characters/,
    )
    await expect(load({}, { ...exposed, workerToken: 'short' })).rejects.toThrow(/WORKER_TOKEN has 5 characters/)
    await expect(load({}, { ...exposed, workerToken: 'Secure-Worker-Token' })).rejects.toThrow(
      /WORKER_TOKEN is a well-known/,
    )
    await expect(load({ clients: '[a]\ntoken = "short"' }, exposed)).rejects.toThrow(/\[a\]\.token has 5 characters/)
    const known = `[a]\ntoken_sha256 = "${sha256('changeme')}"`
    await expect(load({ clients: known }, exposed)).rejects.toThrow(
      /\[a\]\.token_sha256 is the hash of a well-known default/,
    )
    await expect(load({}, { ...exposed, workerToken: 'token-of-my-workers-1' })).rejects.toThrow(
      /WORKER_TOKEN is made of ordinary words, which are easy to guess. Choose a long random one/,
    )
    await expect(load({}, { apiHost: '::' })).rejects.toThrow(/no client has a token/)
    expect((await load({}, { ...exposed, workerToken: `${LONG}-2` })).clients).toHaveLength(1)
  })
})

test('[H-08] secrets of any length compare without an error, by what they are', () => {
  expect(sameSecret('abc', 'abc')).toBe(true)
  expect(sameSecret('abc', hashToken('abc'))).toBe(true)
  for (const other of ['abd', 'ab', 'abcd', '', 'x'.repeat(32)]) expect(sameSecret(other, 'abc')).toBe(false)
})
