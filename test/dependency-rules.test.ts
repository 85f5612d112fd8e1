import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** Where the linter reads: files that break one rule each, with the layout and configuration of the repository. */
let stage = ''
let findings: readonly Finding[] = []

interface Finding {
  readonly file: string
  readonly rule: string
}

const IMPORTS = 'eslint(no-restricted-imports)'
const GLOBALS = 'eslint(no-restricted-globals)'
const PROPERTIES = 'eslint(no-restricted-properties)'
const DEPENDENCY_RULES = new Set([IMPORTS, GLOBALS, PROPERTIES, 'import(no-cycle)', 'eslint(no-console)'])

/** By folder: what it must not import, and what it may. */
const IMPORT_RULES: Readonly<
  Record<string, { readonly refused: readonly string[]; readonly allowed: readonly string[] }>
> = {
  'packages/protocol/src': {
    refused: ['@impresario/core', '@impresario/worker', 'node:fs', 'node:fs/promises'],
    allowed: ['zod', './json.ts'],
  },
  'packages/core/src': {
    refused: ['@impresario/engine', '@impresario/server', '@impresario/storage-embedded', 'zod', 'node:crypto', 'fs'],
    allowed: ['@impresario/protocol', '@impresario/recurrence', 'acorn', './job.ts', '../job/job.ts'],
  },
  'packages/recurrence/src': {
    refused: ['@impresario/core', '@impresario/engine', '@impresario/server', 'node:fs', 'zod'],
    allowed: ['@impresario/protocol', './zone.ts', '../zone.ts'],
  },
  'packages/automations/src': {
    refused: ['@impresario/core', '@impresario/engine', '@impresario/server', 'node:fs', 'zod'],
    allowed: ['@impresario/protocol', '@impresario/recurrence', './template.ts', '../expression/expression.ts'],
  },
  'packages/automations/src/service': {
    refused: ['@impresario/server', '@impresario/storage-embedded', '@impresario/tools', 'node:fs', 'zod'],
    allowed: ['@impresario/core', '@impresario/engine', '@impresario/recurrence', '../run/machine.ts'],
  },
  'packages/mcp/src': {
    refused: ['@impresario/server', '@impresario/client', '@impresario/core', '@impresario/tools'],
    allowed: ['@impresario/protocol', '@modelcontextprotocol/server', 'zod', './api.ts'],
  },
  'packages/engine/src': {
    refused: [
      '@impresario/server',
      '@impresario/storage-embedded',
      '@impresario/graph',
      'pino',
      'node:timers/promises',
    ],
    allowed: ['@impresario/core', '@impresario/protocol', '@impresario/recurrence', './executor.ts'],
  },
  'packages/storage-embedded/src': {
    refused: ['@impresario/engine', '@impresario/server', '@impresario/simulator'],
    allowed: ['@impresario/core', '@impresario/protocol', '@photostructure/sqlite', 'node:worker_threads'],
  },
  'packages/storage-postgres/src': {
    refused: ['@impresario/engine', '@impresario/storage-embedded'],
    allowed: ['@impresario/core', 'pg'],
  },
  'packages/conformance/src': {
    refused: ['@impresario/protocol', '@impresario/storage-embedded', '@impresario/engine'],
    allowed: ['@impresario/core', 'vitest', 'fast-check'],
  },
  'packages/graph/src': {
    refused: ['@impresario/protocol', '@impresario/engine', '@impresario/server'],
    allowed: ['@impresario/core', '@viz-js/viz'],
  },
  'packages/files/src': {
    refused: ['@impresario/core', '@impresario/engine', '@impresario/server'],
    allowed: ['@impresario/protocol', '@aws-sdk/client-s3', 'node:fs/promises'],
  },
  'packages/webhooks/src': {
    refused: ['@impresario/server', '@impresario/storage-embedded', '@impresario/worker'],
    allowed: ['@impresario/core', '@impresario/engine', '@impresario/protocol', 'node:https'],
  },
  'packages/worker/src': {
    refused: ['@impresario/core', '@impresario/client', '@impresario/server', 'zod'],
    allowed: ['@impresario/protocol', 'node:http', 'node:timers/promises', 'ws', '@opentelemetry/api'],
  },
  'packages/client/src': {
    refused: ['@impresario/core', '@impresario/worker', '@impresario/server', 'node:http', 'zod'],
    allowed: ['@impresario/protocol'],
  },
  'packages/server/src': {
    refused: ['@impresario/worker', '@impresario/simulator', '@impresario/cli'],
    allowed: [
      '@impresario/client',
      '@impresario/core',
      '@impresario/engine',
      '@impresario/graph',
      '@impresario/protocol',
      '@impresario/protocol/schemas',
      '@impresario/storage-embedded',
      'fastify',
      'node:http',
    ],
  },
  'packages/simulator/src': {
    refused: ['@impresario/server', '@impresario/client'],
    allowed: [
      '@impresario/automations',
      '@impresario/core',
      '@impresario/engine',
      '@impresario/protocol',
      '@impresario/recurrence',
      '@impresario/storage-embedded',
    ],
  },
  'packages/impresario/src': {
    refused: ['@impresario/engine', '@impresario/storage-embedded', '@impresario/simulator', 'node:fs', 'zod'],
    allowed: [
      '@impresario/core',
      '@impresario/documents/app',
      '@impresario/server',
      '@impresario/server/embedded',
      './embedded.ts',
    ],
  },
  'packages/testing/src': {
    refused: ['@impresario/engine', '@impresario/server', '@impresario/simulator', 'node:fs', 'zod'],
    allowed: ['@impresario/core', '@impresario/server/embedded', '@impresario/storage-embedded', '@impresario/worker'],
  },
  'examples/src': {
    refused: ['@impresario/core', '@impresario/engine', '@impresario/server', '@impresario/worker'],
    allowed: ['impresario', 'impresario/client', 'impresario/server', 'impresario/worker', 'zod'],
  },
  'apps/cli/src': {
    refused: ['@impresario/engine/executor', '@impresario/server/api'],
    allowed: ['@impresario/core', '@impresario/server', '@impresario/client', '@impresario/graph', 'commander'],
  },
}

/** Where time, random numbers and the outside world are passed in as parameters only. */
const PURE = ['packages/automations/src', 'packages/core/src', 'packages/engine/src', 'packages/recurrence/src']

/** No package may import internals of another package, tests included. */
const REFUSED_EVERYWHERE = [
  '@impresario/core/src/index.ts',
  '@impresario/core/dist/index.js',
  '../../core/src/index.ts',
  '../../../packages/core/src/index.ts',
  '../../core/dist/index.js',
]

const IMPURE = [
  'export const at = Date.now()',
  'export const at = new Date()',
  'export const at = globalThis.Date.now()',
  'export const at = performance.now()',
  'export const chance = Math.random()',
  'export const { random } = Math',
  'setTimeout(() => {}, 1)',
  'setInterval(() => {}, 1)',
  'setImmediate(() => {})',
  'export const environment = process.env',
  "export const answer = await fetch('http://localhost')",
  "console.log('here')",
  'export const id = crypto.randomUUID()',
]

const OTHER_RULES: Readonly<Record<string, { readonly code: string; readonly rule: string }>> = {
  'packages/server/src/console.ts': { code: "console.log('here')\n", rule: 'eslint(no-console)' },
  'packages/core/src/cycle-a.ts': {
    code: "import { b } from './cycle-b.ts'\nexport const a = () => b\n",
    rule: 'import(no-cycle)',
  },
  'packages/core/src/long.ts': {
    code: Array.from({ length: 401 }, (_, index) => `export const line${index} = ${index}\n`).join(''),
    rule: 'eslint(max-lines)',
  },
  'packages/core/src/long-function.ts': {
    code: `export function long(): void {\n${'  long()\n'.repeat(71)}}\n`,
    rule: 'eslint(max-lines-per-function)',
  },
  'packages/core/src/any.ts': { code: 'export const x: any = 1\n', rule: 'typescript(no-explicit-any)' },
  'packages/core/src/floating.ts': {
    code: 'async function later(): Promise<void> {}\nlater()\n',
    rule: 'typescript(no-floating-promises)',
  },
  'packages/core/src/misused.ts': {
    code: 'async function later(): Promise<void> {}\nif (later()) throw new Error("no")\n',
    rule: 'typescript(no-misused-promises)',
  },
  'packages/core/src/switch.ts': {
    code: "export function f(x: 'a' | 'b'): number {\n  switch (x) {\n    case 'a':\n      return 1\n  }\n  return 2\n}\n",
    rule: 'typescript(switch-exhaustiveness-check)',
  },
}

const FINE: Readonly<Record<string, string>> = {
  'packages/core/src/cycle-b.ts': "import { a } from './cycle-a.ts'\nexport const b = () => a\n",
  'packages/engine/src/time.test.ts': "import '@impresario/storage-embedded'\nexport const at = Date.now()\n",
  'apps/cli/src/console.ts': "console.log('here')\n",
  'bench/src/console.ts': "console.log('here')\n",
  'packages/simulator/src/main.ts': "console.log('here')\n",
}

/** A file name that distinguishes the cases of one folder. */
function caseFile(folder: string, subject: string): string {
  return `${folder}/case-${Buffer.from(subject).toString('hex')}.ts`
}

function importOf(specifier: string): string {
  return `import { x } from '${specifier}'\nexport const y = x\n`
}

/** Runs the linter, which exits with an error code whenever it finds something. */
async function lint(folder: string, options: readonly string[]): Promise<readonly Finding[]> {
  const linter = join(import.meta.dirname, '../node_modules/oxlint/bin/oxlint')
  const command = [linter, '-f', 'json', ...options]
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, command, { cwd: folder, maxBuffer: 100_000_000 }, (_error, stdout) => resolve(stdout))
  })
  return parseFindings(output)
}

function parseFindings(output: string): readonly Finding[] {
  const { diagnostics } = JSON.parse(output) as { diagnostics: { filename: string; code?: string }[] }
  return diagnostics.map(({ filename, code }) => ({ file: filename.replaceAll('\\', '/'), rule: code ?? 'error' }))
}

async function put(file: string, code: string): Promise<void> {
  await mkdir(dirname(join(stage, file)), { recursive: true })
  await writeFile(join(stage, file), code)
}

function rulesBrokenBy(file: string): readonly string[] {
  return findings.filter((finding) => finding.file === file).map((finding) => finding.rule)
}

beforeAll(async () => {
  stage = await mkdtemp(join(tmpdir(), 'impresario-lint-'))
  await copyFile(join(import.meta.dirname, '../.oxlintrc.json'), join(stage, '.oxlintrc.json'))
  await writeFile(
    join(stage, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { strict: true, module: 'nodenext', types: [] } }),
  )
  for (const [folder, { refused, allowed }] of Object.entries(IMPORT_RULES)) {
    for (const specifier of [...refused, ...allowed, ...REFUSED_EVERYWHERE]) {
      await put(caseFile(folder, specifier), importOf(specifier))
      await put(caseFile(folder, specifier).replace(/ts$/, 'test.ts'), importOf(specifier))
    }
  }
  for (const folder of PURE) {
    for (const code of IMPURE) await put(caseFile(folder, code), `${code}\n`)
  }
  for (const [file, { code }] of Object.entries(OTHER_RULES)) await put(file, code)
  for (const [file, code] of Object.entries(FINE)) await put(file, code)
  findings = await lint(stage, ['--type-aware'])
})

afterAll(async () => {
  await rm(stage, { recursive: true, force: true })
})

describe.for(Object.entries(IMPORT_RULES))('%s', ([folder, { refused, allowed }]) => {
  test.for([...refused, ...REFUSED_EVERYWHERE])('must not import %s', (specifier) => {
    expect(rulesBrokenBy(caseFile(folder, specifier))).toContain(IMPORTS)
  })

  test.for(allowed)('may import %s', (specifier) => {
    expect(rulesBrokenBy(caseFile(folder, specifier))).not.toContain(IMPORTS)
  })

  test('in its tests reaches other packages by their names only', () => {
    for (const specifier of REFUSED_EVERYWHERE) {
      expect(rulesBrokenBy(caseFile(folder, specifier).replace(/ts$/, 'test.ts'))).toContain(IMPORTS)
    }
  })
})

describe.for(PURE)('%s is pure', (folder) => {
  test.for(IMPURE)('gets time, chance and the outside through ports: %s', (code) => {
    const broken = rulesBrokenBy(caseFile(folder, code))
    expect(broken.some((rule) => rule === GLOBALS || rule === PROPERTIES)).toBe(true)
  })
})

test.for(Object.entries(OTHER_RULES))('%s is refused', ([file, { rule }]) => {
  expect(rulesBrokenBy(file)).toContain(rule)
})

test('programs and tests have the freedom that they need', () => {
  for (const file of Object.keys(FINE).filter((name) => !name.includes('cycle'))) {
    expect(rulesBrokenBy(file).filter((rule) => DEPENDENCY_RULES.has(rule))).toEqual([])
  }
})

test('the repository keeps its dependency rules', async () => {
  const found = await lint(join(import.meta.dirname, '..'), [])
  expect(found.filter(({ rule }) => DEPENDENCY_RULES.has(rule))).toEqual([])
})
