import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import { JobFiles, openStore } from '@impresario/files'
import type { FileStore } from '@impresario/files'
import { isImpresarioError } from '@impresario/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sendFile } from './download.ts'

const KEY = 'jobs/job/a.txt'
let directory = ''
let plain: FileStore
/** Happens right after the next look at a file, before anything else does. */
let afterHead: (() => Promise<unknown>) | undefined
let app: FastifyInstance

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-download-'))
  plain = await openStore({ concurrencyMax: 1, bucket: 'b', directory })
  afterHead = undefined
  const files = new JobFiles(watched(plain), { fileBytesMax: 1_000, jobFilesMax: 10, jobBytesMax: 10_000 })
  app = fastify()
  app.setErrorHandler((error, _request, reply) =>
    reply.code(isImpresarioError(error, 'RANGE_NOT_SATISFIABLE') ? 416 : isImpresarioError(error) ? 404 : 500).send(''),
  )
  app.get('/', async (request, reply) => sendFile(files, { jobId: 'job', name: 'a.txt' }, request, reply))
})
afterEach(async () => {
  await app.close()
  await rm(directory, { recursive: true, force: true })
})

function watched(store: FileStore): FileStore {
  const head: FileStore['head'] = async (key) => {
    const found = await store.head(key)
    const then = afterHead
    afterHead = undefined
    await then?.()
    return found
  }
  const of = (target: FileStore, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, name)
    return typeof value === 'function' ? value.bind(target) : value
  }
  return new Proxy(store, { get: (target, name) => (name === 'head' ? head : of(target, name)) })
}

async function write(text: string): Promise<string> {
  return `"${(await plain.put(KEY, Readable.from([Buffer.from(text)]))).etag}"`
}

async function goOn(etag: string, range: string): Promise<readonly unknown[]> {
  const answer = await app.inject({ url: '/', headers: { range, 'if-range': etag } })
  return [answer.statusCode, answer.headers['content-range'], answer.body]
}

test('[J-06] a download that goes on while the file is being replaced gets all of the new one, and never a part of it', async () => {
  const first = await write('0123456789')
  expect(await goOn(first, 'bytes=4-')).toEqual([206, 'bytes 4-9/10', '456789'])
  afterHead = async () => write('abcdefghijkl')
  expect(await goOn(first, 'bytes=4-')).toEqual([200, undefined, 'abcdefghijkl'])
  // The store lets in one at a time: what was opened and not sent has left it.
  expect(await goOn(first, 'bytes=4-')).toEqual([200, undefined, 'abcdefghijkl'])
})

test('[J-06] so it does if the new file is too short for the part, and a file that was deleted is not there', async () => {
  const first = await write('0123456789')
  afterHead = async () => write('abc')
  expect(await goOn(first, 'bytes=4-')).toEqual([200, undefined, 'abc'])
  const second = await write('0123456789')
  expect(await goOn(second, 'bytes=10-')).toEqual([416, 'bytes */10', ''])
  afterHead = async () => plain.delete([KEY])
  expect(await goOn(second, 'bytes=4-')).toEqual([404, undefined, ''])
})
