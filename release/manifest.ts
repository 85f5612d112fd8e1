import type { Gathered } from './gathering.ts'
import { PUBLIC } from './workspace.ts'
import type { Manifest, Workspace } from './workspace.ts'

const KEYWORDS = [
  'workflow',
  'workflow-engine',
  'durable-execution',
  'orchestration',
  'job-queue',
  'state-machine',
  'scheduler',
  'background-jobs',
  'typescript',
]

/**
 * What only some users need: drivers of databases, the SDK of S3, OpenTelemetry, and the loader of TypeScript for development. In the tarball these are
 * optional peers. In this repository they are ordinary dependencies of the packages that use them.
 */
const OPTIONAL = [
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
]

/** The `package.json` of the tarball. It asks for what the packages inside ask for. */
export function publishedManifest(
  workspaces: ReadonlyMap<string, Workspace>,
  { inside, outside }: Pick<Gathered, 'inside' | 'outside'>,
  command: string,
): Readonly<Record<string, unknown>> {
  const own = manifestOf(workspaces, PUBLIC)
  const { name, version, description, license, engines } = own
  const asked = askedBy(workspaces, inside)
  const dependencies = selected(asked, (one) => !OPTIONAL.includes(one))
  const peerDependencies = selected(asked, (one) => OPTIONAL.includes(one), '^')
  const unknown = [...outside].filter((one) => !(one in dependencies) && !(one in peerDependencies))
  if (unknown.length > 0) throw new Error(`The code imports ${unknown.join(', ')}, and no package.json names it.`)
  return {
    name,
    version,
    description,
    keywords: KEYWORDS,
    license,
    type: 'module',
    bin: { impresario: command },
    main: './dist/index.js',
    types: './dist/index.d.ts',
    exports: publishedExports(own),
    files: ['dist', 'NOTICE'],
    engines,
    dependencies,
    peerDependencies,
    peerDependenciesMeta: Object.fromEntries(OPTIONAL.map((one) => [one, { optional: true }])),
  }
}

/** Versions by name, of everything from elsewhere that the packages inside ask for, and of optional tools that they load. */
function askedBy(
  workspaces: ReadonlyMap<string, Workspace>,
  inside: ReadonlySet<string>,
): readonly (readonly [name: string, version: string])[] {
  const found = new Map<string, string>()
  for (const name of inside) {
    const { dependencies = {}, devDependencies = {} } = manifestOf(workspaces, name)
    const tools = Object.entries(devDependencies).filter(([one]) => OPTIONAL.includes(one))
    for (const [one, version] of [...Object.entries(dependencies), ...tools]) {
      if (workspaces.has(one)) continue
      const before = found.get(one)
      if (before !== undefined && before !== version) {
        throw new Error(`${one} is wanted as ${before} and as ${version}: choose one version.`)
      }
      found.set(one, version)
    }
  }
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

function selected(
  asked: readonly (readonly [name: string, version: string])[],
  isWanted: (name: string) => boolean,
  range = '',
): Readonly<Record<string, string>> {
  return Object.fromEntries(asked.filter(([name]) => isWanted(name)).map(([name, version]) => [name, range + version]))
}

/** Without the sources, which are not in the tarball. */
function publishedExports({ exports = {} }: Manifest): Readonly<Record<string, unknown>> {
  const published: Record<string, unknown> = {}
  for (const [entry, { types, default: code }] of Object.entries(exports)) published[entry] = { types, default: code }
  return { ...published, './package.json': './package.json' }
}

function manifestOf(workspaces: ReadonlyMap<string, Workspace>, name: string): Manifest {
  const workspace = workspaces.get(name)
  if (workspace === undefined) throw new Error(`There is no package ${name} in this repository.`)
  return workspace.manifest
}
