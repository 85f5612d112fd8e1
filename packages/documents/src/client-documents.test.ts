import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createServer } from '@impresario/server'
import type { Settings } from '@impresario/server'
import { expect, onTestFinished, test, vi } from 'vitest'
import { attributesIn, Collector } from '../../../test/servers/collector.ts'
import { ClientDocuments } from './client-documents.ts'
import { documentsConfig } from './config/config.ts'
import { newDirectory, TextParser } from './engine/documents.fixture.ts'

const TOKENS = { anna: 'token-of-anna-0123456789', boris: 'token-of-boris-0123456789' }

interface Answer {
  readonly status: number
  readonly body: unknown
}

/** A server with two clients; each has a folder with one document that has a word of its own, and one that both have. */
async function startServer(more: Partial<Settings> = {}) {
  const base = await newDirectory('server')
  const clientsConfigPath = join(base, 'clients.toml')
  const tables = Object.entries(TOKENS).map(([name, token]) => `[${name}]\ntoken = "${token}"\n`)
  await writeFile(clientsConfigPath, tables.join(''))
  for (const name of Object.keys(TOKENS)) {
    await mkdir(join(base, name))
    await writeFile(join(base, name, `${name}.txt`), `Общая тайна, и ${name} тоже.`)
  }
  await writeFile(join(base, 'secret.txt'), 'чужое')
  const config = documentsConfig({
    watch: { quiet: '20ms' },
    clients: { anna: { folders: [join(base, 'anna')] }, boris: { folders: [join(base, 'boris')] } },
  })
  const documents = new ClientDocuments({ directory: join(base, 'data'), config, parser: new TextParser() })
  const server = createServer({
    blueprints: [documents.blueprint],
    documents,
    settings: {
      apiHost: '127.0.0.1',
      apiPort: 0,
      storageUrl: 'memory:',
      logLevel: 'silent',
      clientsConfigPath,
      ...more,
    },
  })
  const { address } = await server.start()
  await documents.start(server)
  onTestFinished(async () => {
    await documents.stop()
    await server.stop()
  })
  const call = async (who: keyof typeof TOKENS, method: string, path: string, body?: object): Promise<Answer> => {
    const headers = {
      'X-Client-Token': TOKENS[who],
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    }
    const answer = await fetch(`${address}/api/v1${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: await answer.json() }
  }
  const names = async (who: keyof typeof TOKENS, query: string): Promise<readonly string[]> => {
    const { body } = await call(who, 'GET', `/documents?q=${encodeURIComponent(query)}`)
    return (body as { readonly hits: readonly { readonly name: string }[] }).hits.map(({ name }) => name)
  }
  /** A tool of the Model Context Protocol. */
  const ask = async (who: keyof typeof TOKENS, name: string, args: object): Promise<unknown> => {
    const prefix = 'io.modelcontextprotocol/'
    const meta = {
      [`${prefix}protocolVersion`]: '2026-07-28',
      [`${prefix}clientInfo`]: { name: 'tests', version: '1.0.0' },
      [`${prefix}clientCapabilities`]: {},
    }
    const answer = await fetch(`${address}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TOKENS[who]}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': name,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: args, _meta: meta },
      }),
    })
    const text = await answer.text()
    const { result } = JSON.parse(/^data: (\{.*\})$/m.exec(text)?.[1] ?? text) as {
      readonly result?: { readonly structuredContent?: unknown }
    }
    return result?.structuredContent ?? text
  }
  return { base, call, names, ask, address }
}

test('[L-04] an index belongs to a client: neither search nor id nor path reaches another one’s', async () => {
  const { base, call, names } = await startServer()
  await vi.waitFor(async () => expect(await names('anna', 'тайны')).toEqual(['anna.txt']), 60_000)
  await vi.waitFor(async () => expect(await names('boris', 'тайны')).toEqual(['boris.txt']), 60_000)
  expect(await names('anna', 'boris')).toEqual([])
  const text = await call('anna', 'GET', '/documents/1/text')
  expect(text).toMatchObject({ status: 200, body: { id: 1, text: 'Общая тайна, и anna тоже.' } })
  expect(await call('boris', 'GET', '/documents/1/text')).toMatchObject({
    body: { text: 'Общая тайна, и boris тоже.' },
  })
  for (const path of [
    join(base, 'anna', 'anna.txt'),
    join(base, 'secret.txt'),
    '/etc/passwd',
    `${base}/boris/../secret.txt`,
  ]) {
    expect(await call('boris', 'POST', '/documents', { path })).toMatchObject({ status: 403 })
  }
})

test('[L-04] [H-05] a link in a client’s own folder leads nowhere, however it comes there', async () => {
  const { base, call, names } = await startServer()
  const own = join(base, 'boris')
  await symlink(join(base, 'secret.txt'), join(own, 'link.txt'))
  await symlink(join(base, 'anna'), join(own, 'folder'))
  expect(await call('boris', 'POST', '/documents', { path: join(own, 'link.txt') })).toMatchObject({ status: 422 })
  const inside = { path: join(own, 'folder', 'anna.txt') }
  expect(await call('boris', 'POST', '/documents', inside)).toMatchObject({ status: 403 })
  // What comes after the links is noticed after them.
  await writeFile(join(own, 'last.txt'), 'последнее')
  await vi.waitFor(async () => expect(await names('boris', 'последнее')).toEqual(['last.txt']), 60_000)
  expect(await names('boris', 'чужое')).toEqual([])
  expect(await names('boris', 'anna')).toEqual([])
})

test('[L-04] [K-12] an assistant finds and reads the documents of its client, and of no other', async () => {
  const { names, ask } = await startServer()
  for (const who of ['anna', 'boris'] as const) {
    await vi.waitFor(async () => expect(await names(who, 'тайны')).toEqual([`${who}.txt`]), 60_000)
    const found = await ask(who, 'search', { query: 'общие тайны' })
    expect(found).toMatchObject({ results: [{ id: 'document:1', title: `${who}.txt` }] })
    expect(await ask(who, 'fetch', { id: 'document:1' })).toMatchObject({ text: `Общая тайна, и ${who} тоже.` })
  }
  expect(await ask('anna', 'search', { query: 'boris' })).toEqual({ results: [] })
})

test('[L-07] [I-03] the metrics of the server have the figures of all indexes, added up, on the page and for a collector', async () => {
  const collector = await new Collector().listen()
  const { address } = await startServer({
    otelMetricsEndpoint: `${collector.url}/v1/metrics`,
    otelMetricIntervalMs: 200,
  })
  const figure = async (name: string): Promise<number> => {
    const lines = (await (await fetch(`${address}/metrics`)).text()).split('\n')
    const found = lines.filter((line) => line.startsWith(`impresario_documents_${name}`))
    return found.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  await vi.waitFor(
    async () => expect(await figure('tasks_processed_total{type="index",status="completed"}')).toBe(2),
    60_000,
  )
  const indexed = await collector.until(() => {
    const points = collector.metrics.findLast(({ name }) => name === 'stroidex_tasks_processed_total')?.sum?.dataPoints
    return points?.find(({ asDouble, attributes }) => asDouble === 2 && attributesIn(attributes)['type'] === 'index')
  })
  expect(attributesIn(indexed.attributes)).toEqual({ type: 'index', status: 'completed' })
  expect(await figure('task_duration_seconds_count{type="index"}')).toBe(2)
  await vi.waitFor(async () => expect(await figure('queue_size')).toBe(0), 60_000)
})

test('[L-05] the API takes files, lists them with their status, and shows the state', async () => {
  const { base, call, names } = await startServer()
  await writeFile(join(base, 'anna', 'new.txt'), 'свежее')
  expect(await call('anna', 'POST', '/documents', { path: join(base, 'anna', 'new.txt') })).toMatchObject({
    status: 202,
  })
  await vi.waitFor(async () => expect(await names('anna', 'свежее')).toEqual(['new.txt']), 60_000)
  expect(await call('anna', 'POST', '/documents', { path: join(base, 'anna', 'none.txt') })).toMatchObject({
    status: 422,
  })
  await vi.waitFor(async () => {
    const { body } = await call('anna', 'GET', '/documents/files?status=completed')
    expect(body).toHaveLength(2)
  }, 60_000)
  expect(await call('anna', 'GET', '/documents/status')).toMatchObject({
    status: 200,
    body: { documents: 2, state: { status: 'running' } },
  })
  expect(await call('anna', 'POST', '/documents/retry')).toEqual({ status: 202, body: { retried: 0 } })
  for (const path of ['/documents', '/documents?q=x&limit=1000', '/documents/files?status=odd']) {
    expect(await call('anna', 'GET', path)).toMatchObject({ status: 400 })
  }
  expect(await call('anna', 'GET', '/documents?q=date:odd')).toMatchObject({ status: 422 })
  expect(await call('anna', 'GET', '/documents/none/text')).toMatchObject({ status: 404 })
})
