import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { describe, expect, test } from 'vitest'

const PACKAGES = join(import.meta.dirname, '..', 'packages')

/**
 * The rooms of each large package, and which other rooms each may import. Files outside any room assemble the package
 * and may import every room. Tests and fixtures are exempt.
 */
const ROOMS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  server: {
    runtime: [],
    config: ['runtime'],
    'worker-protocol': ['runtime'],
    http: ['runtime', 'config', 'worker-protocol'],
    auth: ['runtime', 'config', 'worker-protocol', 'http'],
    limits: ['runtime', 'config', 'http', 'auth'],
    automations: ['runtime', 'telemetry'],
    metrics: ['runtime', 'http'],
    files: ['runtime', 'config', 'http', 'metrics'],
    telemetry: ['runtime', 'config', 'metrics'],
    orchestrator: ['runtime', 'config', 'worker-protocol', 'limits', 'automations', 'files'],
    // Its short way past the framework does what hooks do for the others: rate limits, admission, metrics.
    'worker-api': [
      'runtime',
      'config',
      'worker-protocol',
      'http',
      'auth',
      'limits',
      'orchestrator',
      'files',
      'metrics',
    ],
    'client-api': [
      'runtime',
      'worker-protocol',
      'http',
      'auth',
      'limits',
      'orchestrator',
      'automations',
      'files',
      'metrics',
      'telemetry',
    ],
    mcp: ['runtime', 'config', 'http', 'telemetry'],
    'old-api': ['runtime', 'http', 'auth', 'orchestrator', 'automations', 'client-api'],
    dashboard: ['runtime', 'config', 'http', 'auth', 'client-api'],
    transfer: ['runtime', 'config', 'orchestrator'],
  },
  engine: {
    service: [],
    job: ['service'],
    turns: ['service', 'job'],
    workers: ['service', 'job'],
    background: ['service', 'job', 'workers'],
  },
  'storage-redis': {
    functions: [],
    client: ['functions'],
    shards: ['functions', 'client'],
    transfer: ['functions', 'client', 'shards', '.'],
  },
  worker: {
    runtime: [],
    // These three refer to each other's types: a transport is a setting, and a setting selects the transport.
    transport: ['runtime', 'settings'],
    settings: ['runtime', 'transport', 'tasks'],
    tasks: ['runtime', 'settings', 'transport', '.'],
    orchestrator: ['runtime', 'settings', 'transport', 'tasks'],
  },
}

describe.each(Object.entries(ROOMS))('the rooms of %s', (name, rooms) => {
  const source = join(PACKAGES, name, 'src')

  test('are all named here', () => {
    const folders = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const withCode = folders.filter((folder) => sourceFiles(join(source, folder.name)).length > 0)
    expect(withCode.map((folder) => folder.name).toSorted()).toEqual(Object.keys(rooms).toSorted())
  })

  test('import only the rooms below them', () => {
    const wrong = sourceFiles(source).flatMap((file) => {
      const from = roomOf(source, file)
      if (from === '.') return []
      const allowed = new Set([from, ...(rooms[from] ?? [])])
      return importsOf(file)
        .filter((target) => !allowed.has(roomOf(source, target)))
        .map((target) => `${relative(source, file)} imports ${relative(source, target)}`)
    })
    expect(wrong).toEqual([])
  })
})

/** Files with code of the product, in this folder and below. */
function sourceFiles(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .filter((entry) => !/\.(?:test|fixture|types)\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
}

/** The first folder below `src`, or `.` for a file in `src` itself. */
function roomOf(source: string, file: string): string {
  const parts = relative(source, file).split(sep)
  return parts.length > 1 ? (parts[0] ?? '.') : '.'
}

function importsOf(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/(?:from|import\() ?'(\.{1,2}\/[^']+)'/g)].map((match) =>
    resolve(dirname(file), match[1] ?? ''),
  )
}
