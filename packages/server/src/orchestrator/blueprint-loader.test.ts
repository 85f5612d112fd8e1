import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadBlueprints } from './blueprint-loader.ts'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

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
  await expect(loadBlueprints(join(directory, 'none'))).rejects.toThrow('there is no such directory')
})

interface Development {
  readonly names: () => Promise<unknown>
  /** Does something, and gives what the log says of the reload that follows. */
  readonly after: (work: () => Promise<unknown>) => Promise<{ readonly message: string; readonly error?: unknown }>
}

/** A server that reads its blueprints again when they change. */
async function develop(blueprintsDir: string): Promise<Development> {
  let told: (line: { readonly message: string; readonly error?: unknown }) => void = () => {}
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    if (message.startsWith('blueprints')) told({ message, ...fields })
  }
  const log = { debug: () => {}, info: note, warn: () => {}, error: note }
  const server = await startTestServer({ log, watch: true, blueprints: [], settings: { blueprintsDir } })
  app = server
  return {
    names: async () =>
      (JSON.parse((await server.client('GET', '/api/v1/blueprints')).text) as { name: string }[]).map(
        ({ name }) => name,
      ),
    after: async (work) => {
      const line = new Promise<{ readonly message: string }>((resolve) => {
        told = resolve
      })
      await work()
      return line
    },
  }
}

const RELOADED = { message: 'blueprints reloaded' }
const REFUSED = 'blueprints could not be reloaded; the old ones stay'

test('[A-09] in development a change is taken over, and a broken file keeps the old version and says why', async () => {
  await put('helper.js', "export const name = 'first'")
  await put('one.js', `import { name } from './helper.js'\n${source('NAME').replace("'NAME'", 'name')}`)
  const { names, after } = await develop(directory)
  expect(await names()).toEqual(['first'])
  expect(await after(() => put('helper.js', "export const name = 'second'"))).toMatchObject(RELOADED)
  expect(await names()).toEqual(['second'])
  const refused = await after(() => put('helper.js', 'export const name = '))
  expect(refused).toMatchObject({ message: REFUSED })
  expect(refused.error).toContain('helper.js: it cannot be loaded: Unexpected end of input')
  expect(await names()).toEqual(['second'])
})

test('[A-09] what a blueprint imports from outside of its directory counts, however it is saved', async () => {
  const inside = join(directory, 'blueprints')
  await mkdir(inside)
  const contract = await put('contract.ts', "export const name: string = 'first'")
  await put('blueprints/one.ts', `import { name } from '../contract.ts'\n${source('NAME').replace("'NAME'", 'name')}`)
  const { names, after } = await develop(inside)
  for (const name of ['replaced', 'in place', 'replaced again', 'in place again']) {
    const text = `export const name: string = '${name}'`
    const save = async (): Promise<void> => {
      if (!name.startsWith('replaced')) return writeFile(contract, text)
      await writeFile(`${contract}.tmp`, text)
      return rename(`${contract}.tmp`, contract)
    }
    expect(await after(save)).toMatchObject(RELOADED)
    expect(await names()).toEqual([name])
  }
})
