import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newStorageUrl } from './servers/storage-ground.ts'

/* Files by the client SDK, over HTTP and in the process of the server. */

const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

let directory = ''
let server: Server
const clients = new Map<string, Client>()

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-files-clients-'))
  const settings = { apiHost: '127.0.0.1', apiPort: 0, storageUrl: newStorageUrl(), filesDir: join(directory, 'files') }
  server = createServer({ blueprints: [quick], log: SILENT, settings })
  const { address: url } = await server.start()
  clients.set('over HTTP', createClient({ url }))
  clients.set('in process', server.client())
})
afterAll(async () => {
  await server?.stop()
  await rm(directory, { recursive: true, force: true })
})

describe.each(['over HTTP', 'in process'])('%s', (way) => {
  test('[J-06] the client SDK sends, lists, reads, links and deletes files', async () => {
    const { files } = await required(clients.get(way)).start('quick', {})
    const content = randomBytes(500_000)
    const sha256 = createHash('sha256').update(content).digest('hex')
    const sent = await files.upload('in/a.bin', new Blob([content]).stream(), { sha256 })
    expect(sent).toMatchObject({ name: 'in/a.bin', bytes: 500_000, sha256 })
    await expect(files.upload('in/b.bin', 'other', { sha256 })).rejects.toMatchObject({ code: 'FILE_MISMATCH' })
    expect(await files.list('in/')).toMatchObject([{ name: 'in/a.bin', bytes: 500_000 }])
    const whole = await files.download('in/a.bin')
    expect((await buffer(whole.body)).equals(content)).toBe(true)
    const rest = await files.download('in/a.bin', { from: 499_990, etag: whole.etag })
    expect([rest.from, rest.bytes, (await buffer(rest.body)).length]).toEqual([499_990, 500_000, 10])
    const changed = await files.download('in/a.bin', { from: 499_990, etag: 'another' })
    expect([changed.from, (await buffer(changed.body)).length]).toEqual([0, 500_000])
    const { url: link } = await files.link('in/a.bin', { expiresMs: 60_000 })
    expect((await (await fetch(link)).arrayBuffer()).byteLength).toBe(500_000)
    const { url: target, method } = await files.uploadUrl('in/c.txt', { bytes: 3 })
    expect((await fetch(target, { method, body: 'abc' })).status).toBe(200)
    await files.delete('in/a.bin')
    expect((await files.list()).map(({ name }) => name)).toEqual(['in/c.txt'])
    await expect(files.download('in/a.bin')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' })
  })
})

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('missing')
  return value
}
