import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadBlueprints } from './blueprint-loader.ts'
import { startTestServer } from './server.fixture.ts'
import type { TestServer } from './server.fixture.ts'

let directory = ''
let app: TestServer | undefined

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-blueprints-'))
  await writeFile(join(directory, 'package.json'), '{"type":"module"}')
})
afterEach(async () => {
  await app?.server.stop()
  app = undefined
  await rm(directory, { recursive: true, force: true })
})

/** A blueprint without an import: what lies outside of the repository finds no packages. */
function source(name: string, more = ''): string {
  return `export const made = {
    name: '${name}', version: 1, start: 'done', ${more}
    policy: { transitionsMax: 100, handlerAttemptsMax: 4, taskAttemptsMax: 4, backoffMs: 1, backoffMsMax: 1, runTimeoutMs: 300000 },
    state: (name) => (name === 'done' ? { kind: 'end', outcome: 'finished', computes: false } : undefined),
    nodes: [{ name: 'done', kind: 'end', isStart: true, outcome: 'finished', links: [] }],
    perform: async () => { throw new Error('never') },
    validateInput: async (value) => ({ value }),
    migrate: () => undefined,
  }`
}

async function put(name: string, text: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text)
  return path
}

test('[A-09] every exported blueprint of every file is found, once', async () => {
  const first = await put('one.js', source('one'))
  await put('two.mjs', source('two'))
  await mkdir(join(directory, 'deep'))
  const third = await put('deep/three.ts', `const count: number = 3\n${source('three')}\nexport { count }`)
  await put('index.js', "export { made, made as again } from './one.js'\nexport const other = 5")
  await put('notes.md', 'not code')
  await put('types.d.ts', 'export type Nothing = never')
  const found = await loadBlueprints(directory)
  expect(found.map(({ blueprint }) => blueprint.name).toSorted()).toEqual(['one', 'three', 'two'])
  const files = new Map(found.map(({ blueprint, file }) => [blueprint.name, file]))
  expect(files.get('three')).toBe(third)
  expect([first, join(directory, 'index.js')]).toContain(files.get('one'))
})

test('[A-09] a bad file stops the start, with its path and the reason', async () => {
  const start = () => startTestServer({ settings: { blueprintsDir: directory } })
  const broken = await put('broken.js', 'export const x = ')
  await expect(start()).rejects.toThrow(`${broken}: it cannot be loaded`)
  await put('broken.js', "throw new Error('no luck')")
  await rm(broken)
  const thrower = await put('thrower.js', "throw new Error('no luck')")
  await expect(start()).rejects.toThrow(`${thrower}: it cannot be loaded: no luck`)
  await rm(thrower)
  await put('a.js', source('same'))
  const twin = await put('b.js', source('same'))
  await expect(start()).rejects.toThrow(`${twin}: Blueprint "same": version 1 is registered already`)
  await rm(twin)
  await put('c.js', source('c', "endpoint: '/x',"))
  await put('d.js', source('d', "endpoint: 'x/',"))
  await expect(start()).rejects.toThrow('"c" and "d" both have the endpoint')
  await expect(loadBlueprints(join(directory, 'none'))).rejects.toThrow('the directory cannot be read')
})

test('[A-09] in development a change is taken over, and a broken file keeps the old version', async () => {
  let told: (message: string) => void = () => {}
  const nextMessage = (): Promise<string> =>
    new Promise((resolve) => {
      told = resolve
    })
  const note = (message: string): void => {
    if (message.startsWith('blueprints')) told(message)
  }
  const log = { debug: () => {}, info: note, warn: () => {}, error: note }
  await put('helper.js', "export const name = 'first'")
  const text = source('NAME').replace("'NAME'", 'name')
  await put('one.js', `import { name } from './helper.js'\n${text}`)
  app = await startTestServer({ log, watch: true, blueprints: [], settings: { blueprintsDir: directory } })
  const names = async (): Promise<unknown> =>
    (JSON.parse((await app?.client('GET', '/api/v1/blueprints'))?.text ?? '[]') as { name: string }[]).map(
      ({ name }) => name,
    )
  expect(await names()).toEqual(['first'])
  let reloaded = nextMessage()
  await put('helper.js', "export const name = 'second'")
  expect(await reloaded).toBe('blueprints reloaded')
  expect(await names()).toEqual(['second'])
  reloaded = nextMessage()
  await put('helper.js', 'export const name = ')
  expect(await reloaded).toBe('blueprints could not be reloaded; the old ones stay')
  expect(await names()).toEqual(['second'])
})
