import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createServer } from '@impresario/server'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startPostgres } from '../../../test/servers/postgres-server.ts'
import type { PostgresServer } from '../../../test/servers/postgres-server.ts'
import { ClientDocuments } from './client-documents.ts'
import { documentsConfig } from './config/config.ts'
import { newDirectory, TextParser } from './engine/documents.fixture.ts'

let postgres: PostgresServer
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.stop())

interface Machine {
  readonly documents: ClientDocuments
  paths(query: string): Promise<readonly string[]>
  stop(): Promise<void>
}

interface MachineOptions {
  readonly directory: string
  readonly folder: string
  readonly storageUrl: string
  readonly isIndexShared: boolean
}

/** A server process as it would run on a machine of its own: own directory, shared storage. */
async function startMachine({ directory, folder, storageUrl, isIndexShared }: MachineOptions): Promise<Machine> {
  const config = documentsConfig({ watch: { quiet: '20ms' }, clients: { anna: { folders: [folder] } } })
  const place = isIndexShared ? { postgresUrl: storageUrl } : {}
  const documents = new ClientDocuments({ directory, config, parser: new TextParser(), ...place })
  const server = createServer({
    blueprints: [documents.blueprint],
    documents,
    settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl, logLevel: 'silent', historyDatabaseUri: 'off' },
  })
  await server.start()
  await documents.start(server)
  let isStopped = false
  const stop = async (): Promise<void> => {
    if (isStopped) return
    isStopped = true
    await documents.stop()
    await server.stop()
  }
  onTestFinished(stop)
  const paths = async (query: string): Promise<readonly string[]> => {
    const { hits } = await documents.search('anna', query, { limit: 100 })
    return hits.map(({ path }) => path).toSorted()
  }
  return { documents, paths, stop }
}

test('[L-04] [G-02] machines that share a storage in PostgreSQL share the index: each reads, and each finds everything', async () => {
  const base = await newDirectory('machines')
  const folder = join(base, 'shared')
  await mkdir(folder)
  const storageUrl = `${postgres.url}?schema=machines`
  const options = { folder, storageUrl, isIndexShared: true }
  const names = Array.from({ length: 30 }, (_, index) => join(folder, `${index}.txt`))
  for (const [index, name] of names.entries()) await writeFile(name, `Договоры аренды, номер ${index}.`)
  const one = await startMachine({ ...options, directory: join(base, 'one') })
  const other = await startMachine({ ...options, directory: join(base, 'other') })
  await expect.poll(() => other.paths('договор'), { interval: 200 }).toEqual(names.toSorted())
  expect(await one.paths('договор')).toEqual(names.toSorted())
  // Whoever notices it, both know.
  await rm(names[0] ?? '')
  await expect.poll(() => one.paths('договор'), { interval: 200 }).toEqual(names.slice(1).toSorted())
  expect(await other.paths('договор')).toEqual(names.slice(1).toSorted())
  // The one that is left does the work of both.
  await one.stop()
  await writeFile(join(folder, 'late.txt'), 'Опоздавшее слово')
  await expect.poll(() => other.paths('слова'), { interval: 200 }).toEqual([join(folder, 'late.txt')])
})

test('[L-04] [G-02] machines with an index of their own each do their own files, on a storage that they share', async () => {
  const base = await newDirectory('machines')
  const storageUrl = `${postgres.url}?schema=apart`
  const machines: Machine[] = []
  for (const name of ['one', 'other']) {
    const folder = join(base, `${name}-files`)
    await mkdir(folder)
    for (let index = 0; index < 15; index += 1) await writeFile(join(folder, `${index}.txt`), `Договор ${name}`)
    machines.push(await startMachine({ directory: join(base, name), folder, storageUrl, isIndexShared: false }))
  }
  for (const [index, name] of ['one', 'other'].entries()) {
    const own = Array.from({ length: 15 }, (_, file) => join(base, `${name}-files`, `${file}.txt`)).toSorted()
    await expect.poll(() => machines[index]?.paths('договоры'), { interval: 200 }).toEqual(own)
  }
})
