import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from './run-cli.fixture.ts'

const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

let directory = ''
let server: Server
let url = ''
let client: Client

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-files-clients-'))
  const settings = { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', filesDir: join(directory, 'files') }
  server = createServer({ blueprints: [quick], log: SILENT, settings })
  url = (await server.start()).address
  client = createClient({ url })
})
afterAll(async () => {
  await server?.stop()
  await rm(directory, { recursive: true, force: true })
})

test('[J-06] the command line puts, lists, gets, continues, links and deletes files', async () => {
  const { id } = await client.start('quick', {})
  const cli = async (...words: readonly string[]) => runCli(['files', ...words, '--url', url])
  const [source, copy] = [join(directory, 'source.bin'), join(directory, 'copy.bin')]
  const content = randomBytes(300_000)
  await writeFile(source, content)
  const put = await cli('put', id, source, '--name', 'in/source.bin')
  expect([put.code, put.stdout]).toMatchObject([
    0,
    expect.stringContaining(`s3://impresario-files/jobs/${id}/in/source.bin`),
  ])
  expect((await cli('list', id)).stdout).toMatch(/in\/source\.bin +300\.0 kB/)
  expect((await cli('get', id, 'in/source.bin', '--output', copy)).code).toBe(0)
  expect((await readFile(copy)).equals(content)).toBe(true)
  await truncate(copy, 100_000)
  expect((await cli('get', id, 'in/source.bin', '--output', copy, '--continue')).code).toBe(0)
  expect((await readFile(copy)).equals(content)).toBe(true)
  const { stdout: link } = await cli('link', id, 'in/source.bin', '--for', '1h')
  expect((await fetch(link.trim())).status).toBe(200)
  expect((await cli('delete', id, 'in/source.bin')).code).toBe(0)
  expect((await cli('list', id)).stdout).toContain('The job has no files.')
  const missing = await cli('get', id, 'absent')
  expect([missing.code === 0, missing.stderr]).toMatchObject([false, expect.stringContaining('absent')])
  const nothing = await cli('put', id, join(directory, 'no-such-file'))
  expect([nothing.code === 0, nothing.stderr]).toMatchObject([false, expect.stringContaining('There is no file')])
})
