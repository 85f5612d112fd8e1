import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { checkTypes } from './type-check.ts'
import { containing } from '../tenants.fixture.ts'
import { createOrchestrator } from '../orchestrator.ts'
import type { Orchestrator } from '../orchestrator.ts'

let folder = ''
let orchestrator: Orchestrator | undefined
const lines: string[] = []
let heard: () => void = () => undefined

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'impresario-reload-')))
  await mkdir(join(folder, 'blueprints'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  lines.length = 0
})
afterEach(async () => {
  await orchestrator?.stop()
  orchestrator = undefined
  await rm(folder, { recursive: true, force: true })
})

/** A blueprint without an import, with one state in which its jobs stay and one in which they end. */
function source(version: string): string {
  return `export const made = {
    name: 'tale', version: ${version}, start: 'ask',
    policy: { transitionsMax: 100, handlerAttemptsMax: 4, taskAttemptsMax: 4, backoffMs: 1, backoffMsMax: 1, runTimeoutMs: 300000 },
    state: (name: string) => (name === 'ask' ? { kind: 'normal' } : name === 'done' ? { kind: 'end', outcome: 'finished', computes: false } : undefined),
    nodes: [
      { name: 'ask', kind: 'normal', isStart: true, links: [{ to: 'done' }] },
      { name: 'done', kind: 'end', isStart: false, outcome: 'finished', links: [] },
    ],
    perform: async () => ({ action: { type: 'human', message: 'Go on?', transitions: { yes: 'done' } }, stateHistory: {} }),
    validateInput: async (value: unknown) => ({ value }),
    migrate: () => undefined,
  }`
}

async function develop(options: { readonly checksTypes: boolean }): Promise<Orchestrator> {
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    lines.push([message, ...Object.values(fields).map(String)].join(' '))
    heard()
  }
  orchestrator = createOrchestrator({
    watch: true,
    ...options,
    settings: { storageUrl: newStorageUrl(), blueprintsDir: join(folder, 'blueprints') },
    log: { debug: note, info: note, warn: note, error: note },
  })
  await orchestrator.start()
  return orchestrator
}

/** The first line of the log that fits, which may be there already. */
async function line(pattern: RegExp): Promise<string> {
  for (;;) {
    const found = lines.find((one) => pattern.test(one))
    if (found !== undefined) return found
    await new Promise<void>((resolve) => {
      heard = resolve
    })
  }
}

test('[A-09] a reload says how many open jobs run under versions that are gone', async () => {
  const file = join(folder, 'blueprints/tale.ts')
  await writeFile(file, source('1'))
  const { engine } = await develop({ checksTypes: false })
  const create = async () =>
    (await engine.createJob({ blueprint: 'tale', client: { id: 'default' }, initialData: {} })).jobId
  await create()
  await create()
  await writeFile(file, `${source('1')}\nexport const note = 1`)
  await line(/^blueprints reloaded/)
  lines.length = 0
  await writeFile(file, source('2'))
  expect(await line(/versions that are gone/)).toContain(
    '2 open jobs run under blueprint versions that are gone tale v1',
  )
  expect(lines.filter((one) => one.includes('are gone'))).toHaveLength(1)
})

/** The same with a state between the question and the end, and another name for it after the edit. */
const edited = (name: string): string =>
  source('1')
    .replace("name === 'ask' ?", `name === 'ask' || name === '${name}' ?`)
    .replace("transitions: { yes: 'done' }", `transitions: { yes: '${name}' }`)
    .replace(
      'perform: async () => (',
      `perform: async ({ job }: { job: { state: string } }) => job.state === '${name}' ? ({ action: { type: 'transition', to: 'done' }, stateHistory: {} }) : (`,
    )

test('[A-09] [C-07] an edit that loses a state warns, and what led there counts when the state is back', async () => {
  const file = join(folder, 'blueprints/tale.ts')
  await writeFile(file, edited('ship'))
  const client = (await develop({ checksTypes: false })).client()
  const jobs = [await client.start('tale', {}), await client.start('tale', {})]
  for (const job of jobs) {
    for await (const { status } of job.watch()) if (status === 'waiting_for_human') break
  }
  await writeFile(file, edited('send'))
  expect(await line(/no longer have/)).toMatch(
    /^2 open jobs need states that the blueprints no longer have tale: ship put the states back, or raise the version/,
  )
  const [job] = jobs
  await job?.approve('yes')
  expect(await job?.wait()).toMatchObject({ status: 'quarantined', currentState: 'ask' })
  for (let time = 0; time < 2; time += 1) {
    await expect(job?.retry()).rejects.toMatchObject({
      code: 'STATE_MISSING',
      message: containing('has no state "ship"'),
    })
  }
  lines.length = 0
  await writeFile(file, edited('ship'))
  await line(/^blueprints reloaded/)
  await job?.retry()
  expect(await job?.wait()).toMatchObject({ status: 'finished' })
})

test('[A-09] a type error in a blueprint, or in what it imports, is shown after the load', async () => {
  const packages = dirname(dirname(fileURLToPath(import.meta.resolve('typescript/package.json'))))
  await mkdir(join(folder, 'node_modules'))
  await symlink(join(packages, 'typescript'), join(folder, 'node_modules/typescript'))
  await writeFile(
    join(folder, 'tsconfig.json'),
    '{"compilerOptions":{"strict":true,"module":"nodenext","rootDir":"src"},"include":["src"]}',
  )
  await writeFile(join(folder, 'version.ts'), "export const version: number = 'one'")
  await writeFile(join(folder, 'unrelated.ts'), "export const wrong: number = 'not ours'")
  await writeFile(
    join(folder, 'blueprints/tale.ts'),
    `import { version } from '../version.ts'\n${source('Number(version) || 1')}`,
  )
  await develop({ checksTypes: true })
  const error = /version\.ts:1:14: Type 'string' is not assignable to type 'number'/
  expect(await line(/^type error/)).toMatch(error)
  expect(lines.filter((one) => one.startsWith('type error'))).toHaveLength(1)
  await writeFile(join(folder, 'version.ts.tmp'), 'export const version: number = 1')
  await rename(join(folder, 'version.ts.tmp'), join(folder, 'version.ts'))
  await line(/^no more type errors/)
})

test('[A-09] without TypeScript, or without TypeScript files, types are not checked', async () => {
  const file = join(folder, 'blueprints/tale.ts')
  await writeFile(file, "export const wrong: number = 'x'")
  expect(await checkTypes(folder, [file])).toBeUndefined()
  expect(await checkTypes(import.meta.dirname, [join(folder, 'tale.js')])).toBeUndefined()
  const errors = (await checkTypes(import.meta.dirname, [file]))?.errors
  expect(errors?.[0]).toMatch(/tale\.ts:1:14: Type 'string'/)
})
