import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { subset } from 'semver'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Consumer } from './consumer.fixture.ts'

/** Installation uses the network and may take long on a busy machine; nothing here depends on how long. */
const PATIENCE_MS = 900_000
const PATIENCE = { timeout: PATIENCE_MS }

let consumer: Consumer
let manifest: Manifest

interface Manifest {
  readonly engines: { readonly node: string }
  readonly exports: Readonly<Record<string, unknown>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>
}

beforeAll(async () => {
  consumer = await Consumer.install()
  manifest = await installed<Manifest>('node_modules/impresario/package.json')
}, PATIENCE_MS)

afterAll(async () => {
  await consumer.remove()
}, PATIENCE_MS)

async function installed<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(join(consumer.folder, path), 'utf8')) as T
}

test('[M-06] the tarball holds licence, notice and readme, and nothing of the repository but what is built', async () => {
  const bytes = new Uint8Array(await readFile(consumer.tarball))
  const files = createPackageFromTarballData(bytes).listFiles()
  const inside = files.map((file) => file.replace(/^\/node_modules\/impresario\//, '')).toSorted()
  expect(inside).toEqual(expect.arrayContaining(['LICENSE', 'NOTICE', 'README.md', 'package.json', 'dist/index.js']))
  const app = 'dist/internal/dashboard/app/'
  expect(inside).toEqual(expect.arrayContaining([`${app}index.html`, `${app}licenses.md`]))
  const built = inside.filter((file) => !file.startsWith(app))
  expect(
    built.filter((file) => !/^(?:LICENSE|NOTICE|README\.md|package\.json|dist\/.*\.(?:js|d\.ts|json))$/.test(file)),
  ).toEqual([])
  expect(inside.filter((file) => /\.test\.|\.fixture\.|\.types\./.test(file))).toEqual([])
})

test('[M-06] the compiler has kept the names of all properties', async () => {
  const bytes = new Uint8Array(await readFile(consumer.tarball))
  const tarball = createPackageFromTarballData(bytes)
  const built = tarball.listFiles().filter((file) => file.endsWith('.js'))
  // TypeScript 7.0 writes a property that is named like the class around it as `_a`, its own name for that class.
  expect(built.filter((file) => /[{,]\s*_[a-z]: /.test(tarball.readFile(file)))).toEqual([])
})

test('[M-06] every package in the tree of a consumer runs on every Node that ours names', async () => {
  const { packages } = await installed<{
    readonly packages: Readonly<
      Record<string, { readonly engines?: { readonly node?: string }; readonly dev?: boolean }>
    >
  }>('package-lock.json')
  const asked = Object.entries(packages).filter(([place, { dev }]) => place !== '' && dev !== true)
  expect(asked.length).toBeGreaterThan(20)
  const narrower = asked.filter(([, { engines }]) => !subset(manifest.engines.node, engines?.node ?? '*'))
  expect(narrower.map(([place, { engines }]) => `${place}: ${engines?.node}`)).toEqual([])
})

test('[M-06] databases and tools are peers that need not be there, and nothing for development is asked for', async () => {
  expect(Object.keys(manifest.peerDependencies).toSorted()).toEqual([
    '@aws-sdk/client-s3',
    '@aws-sdk/s3-request-presigner',
    '@opentelemetry/api',
    '@opentelemetry/exporter-metrics-otlp-http',
    '@opentelemetry/otlp-exporter-base',
    '@opentelemetry/resources',
    'ioredis',
    'msgpackr',
    'pg',
    'tsx',
  ])
  expect(Object.values(manifest.peerDependenciesMeta).every(({ optional }) => optional)).toBe(true)
  const { packages } = await installed<{ readonly packages: Readonly<Record<string, unknown>> }>('package-lock.json')
  for (const name of ['@aws-sdk/client-s3', 'ioredis', 'pg', 'vitest', '@impresario/core']) {
    expect({ name, locked: packages[`node_modules/${name}`] }).toEqual({ name, locked: undefined })
  }
})

test('[M-06] publint finds nothing', PATIENCE, async () => {
  const { buffer } = new Uint8Array(await readFile(consumer.tarball))
  const { messages } = await publint({ pack: { tarball: buffer }, strict: true })
  expect(messages).toEqual([])
})

test('[M-06] the types of every entry are found and are those of its code', PATIENCE, async () => {
  const bytes = new Uint8Array(await readFile(consumer.tarball))
  const result = await checkPackage(createPackageFromTarballData(bytes))
  if (result.types === false) throw new Error('The package has no types.')
  // ECMAScript modules only, with `exports`: older resolvers do not read them.
  const judged = result.problems.filter((problem) => {
    if (problem.kind === 'CJSResolvesToESM') return false
    return !('resolutionKind' in problem) || problem.resolutionKind !== 'node10'
  })
  expect(judged).toEqual([])
  expect(Object.keys(result.entrypoints).toSorted()).toEqual(Object.keys(manifest.exports).toSorted())
})

test(
  '[M-06] [K-17] every entry is imported, from modules and with require (defect 1 of the old automation system)',
  PATIENCE,
  async () => {
    const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json')
    expect(entries).toEqual(
      expect.arrayContaining(['.', './client', './worker', './server', './embedded', './documents', './testing']),
    )
    const names = entries.map((entry) => `impresario${entry.slice(1)}`)
    await writeFile(
      join(consumer.folder, 'entries.mjs'),
      names.map((name) => `console.log(Object.keys(await import('${name}')).length > 0)\n`).join(''),
    )
    expect(await consumer.run(process.execPath, ['entries.mjs'])).toEqual({
      code: 0,
      output: 'true\n'.repeat(names.length),
    })
    await writeFile(join(consumer.folder, 'entries.cjs'), names.map((name) => `require('${name}')\n`).join(''))
    expect(await consumer.run(process.execPath, ['--no-warnings', 'entries.cjs'])).toEqual({ code: 0, output: '' })
  },
)

/** Options that are off by default; declarations must be correct with and without them. */
const STRICTEST = {
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
  isolatedModules: true,
}

/** For a library of blueprints: its exported types must be nameable through the entries. */
const DECLARATIONS = { noEmit: false, emitDeclarationOnly: true, declaration: true, outDir: 'declarations' }

test.for([
  ['nodenext', { module: 'nodenext', types: ['node'] }, ['*.ts', 'blueprints']],
  ['strictest', { module: 'nodenext', types: ['node'], ...STRICTEST }, ['*.ts', 'blueprints']],
  ['declarations', { module: 'nodenext', types: ['node'], ...DECLARATIONS }, ['*.ts', 'blueprints']],
  ['bundler', { module: 'esnext', moduleResolution: 'bundler', types: ['node'] }, ['*.ts', 'blueprints']],
  ['browser', { module: 'esnext', moduleResolution: 'bundler', types: [], lib: ['es2023', 'dom'] }, ['browser.ts']],
] as const)('[M-06] a program compiles under %s, declarations included', PATIENCE, async ([name, how, include]) => {
  const always = { target: 'es2023', strict: true, skipLibCheck: false, noEmit: true, allowImportingTsExtensions: true }
  const compilerOptions = { ...always, ...how }
  await writeFile(join(consumer.folder, `tsconfig.${name}.json`), JSON.stringify({ compilerOptions, include }))
  const compiler = join(consumer.folder, 'node_modules/typescript/bin/tsc')
  const outcome = await consumer.run(process.execPath, [compiler, '-p', `tsconfig.${name}.json`])
  expect(outcome).toEqual({ code: 0, output: '' })
})

test('[M-06, M-04] the program of the quick start compiles as it is written there', PATIENCE, async () => {
  const folder = await consumer.writeQuickStart()
  const compiler = join(consumer.folder, 'node_modules/typescript/bin/tsc')
  expect(await consumer.run(process.execPath, [compiler, '-p', folder])).toEqual({ code: 0, output: '' })
})

test('[M-06] dev, a worker and a client bring a job to its end', PATIENCE, async () => {
  const dev = consumer.start(consumer.command, ['dev', '--port', '0', '--json', '--blueprints', 'blueprints'])
  const state = JSON.parse(await dev.says(/^(\{.*\})$/m)) as Readonly<Record<string, string>>
  const { url = '', client_token: clientToken = '', worker_token: workerToken = '' } = state
  const worker = consumer.start(process.execPath, ['--import', 'tsx', 'worker.ts'], {
    ORCHESTRATOR_URL: url,
    WORKER_TOKEN: workerToken,
  })
  const client = await consumer.run(process.execPath, ['--import', 'tsx', 'client.ts'], {
    IMPRESARIO_URL: url,
    IMPRESARIO_TOKEN: clientToken,
  })
  expect(client).toEqual({ code: 0, output: 'Hello, Ada!\n' })
  const listed = await consumer.run(consumer.command, ['jobs', 'list'])
  expect(listed.output).toContain('hello')
  await worker.end('SIGINT')
  expect(await dev.end('SIGINT')).toBe(0)
})

test(
  '[M-06] [I-03] dev without blueprints plays its demo, also if telemetry is asked for and not installed',
  PATIENCE,
  async () => {
    const args = ['dev', '--port', '0', '--data', 'demo-data', '--approve-after', '0']
    const dev = consumer.start(consumer.command, args, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })
    await dev.says(/telemetry stays off.*npm install @opentelemetry\/api/)
    await dev.says(/Try it in a second terminal/)
    expect(await dev.end('SIGINT')).toBe(0)
  },
)

test(
  '[M-06] the orchestrator runs inside a program, with its file, its history and its pictures',
  PATIENCE,
  async () => {
    const { code, output } = await consumer.run(process.execPath, ['--import', 'tsx', 'embedded.ts'])
    expect({ code, output }).toMatchObject({ code: 0 })
    expect(output).toMatch(/^\{"embedded":"Hello, Grace!".*"picture":"<svg"\}$/m)
  },
)

test('[M-06] [L-04] the documents app runs inside a program, with its threads and processes', PATIENCE, async () => {
  const { code, output } = await consumer.run(process.execPath, ['--import', 'tsx', 'documents.ts'])
  expect({ code, output }).toEqual({ code: 0, output: 'note.rtf: договоры аренды\n' })
})

test('[M-05] [M-06] a blueprint is tested with the kit of the package', PATIENCE, async () => {
  expect(await consumer.run(process.execPath, ['--import', 'tsx', 'testing.ts'])).toEqual({
    code: 0,
    output: 'Hello, Edsger! 1\n',
  })
})

test.for([
  ['postgres://nobody@localhost/nothing', 'npm install pg'],
  ['redis://localhost:1', 'npm install ioredis msgpackr'],
] as const)('[M-06] a start on %s without its driver says: %s', PATIENCE, async ([url, advice]) => {
  const env = {
    STORAGE_URL: url,
    CLIENT_TOKEN: randomUUID(),
    WORKER_TOKEN: randomUUID(),
    API_PORT: '0',
  }
  const { code, output } = await consumer.run(consumer.command, ['start'], env)
  expect(code).not.toBe(0)
  expect(output.trim().split('\n').at(-1)).toMatch(new RegExp(`^✗ .* is not installed\\. Run "${advice}"\\.$`))
})
