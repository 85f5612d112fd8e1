import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import fastify from 'fastify'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { registerAppRoutes } from './app-routes.ts'

const SCRIPT = 'console.log("the application")'

let app: FastifyInstance
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-app-'))
  await mkdir(join(directory, 'assets'))
  await writeFile(join(directory, 'index.html'), '<base href="%BASE%"><meta name="api" content="%API%">')
  await writeFile(join(directory, 'early.js'), SCRIPT)
  await writeFile(join(directory, 'assets/main-1a2b.js'), SCRIPT)
  await writeFile(join(directory, 'assets/main-1a2b.js.br'), brotliCompressSync(SCRIPT))
  await writeFile(join(directory, 'assets/main-1a2b.js.gz'), gzipSync(SCRIPT))
  app = fastify()
  registerAppRoutes(app, { clientApiPrefix: 'api', directory, counts: async () => ({}) })
})
afterAll(async () => {
  await app.close()
  await rm(directory, { recursive: true, force: true })
})

const get = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'GET', url: `/dashboard/${path}`, headers })

test('[M-02] files go out as the build has compressed them, and as they are to who wants no compression', async () => {
  const wanted = async (accept: string): Promise<readonly [string | undefined, Buffer]> => {
    const { headers, rawPayload } = await get('assets/main-1a2b.js', { 'accept-encoding': accept })
    expect(headers.vary).toContain('Accept-Encoding')
    expect(headers['content-type']).toContain('text/javascript')
    return [headers['content-encoding']?.toString(), rawPayload]
  }
  const [best, small] = await wanted('gzip, deflate, br, zstd')
  expect([best, brotliDecompressSync(small).toString()]).toEqual(['br', SCRIPT])
  const [second, larger] = await wanted('gzip, br;q=0.5')
  expect([second, gunzipSync(larger).toString()]).toEqual(['gzip', SCRIPT])
  const [none, plain] = await wanted('br;q=0, gzip;q=0')
  expect([none, plain.toString()]).toEqual([undefined, SCRIPT])
})

test('[M-02] browsers keep what is named after its content, and ask again for the rest', async () => {
  const named = await get('assets/main-1a2b.js')
  expect(named.headers['cache-control']).toBe('public, max-age=31536000, immutable')
  const early = await get('early.js')
  expect(early.headers['cache-control']).toBe('no-cache')
  const etag = String(early.headers.etag)
  for (const known of [etag, etag.replace('W/', ''), `"other", ${etag}`]) {
    expect((await get('early.js', { 'if-none-match': known })).statusCode).toBe(304)
  }
  expect((await get('early.js', { 'if-none-match': '"other"' })).statusCode).toBe(200)
  // The compressed forms are no files of their own.
  expect((await get('assets/main-1a2b.js.br')).statusCode).toBe(404)
})
