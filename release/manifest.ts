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
 * The `package.json` of the tarball. It asks for what the packages inside ask for, but for what only some users need: that is
 * an optional peer, as `packages/impresario/package.json` lists.
 */
export function publishedManifest(
  workspaces: ReadonlyMap<string, Workspace>,
  { inside, outside }: Pick<Gathered, 'inside' | 'outside'>,
  command: string,
): Readonly<Record<string, unknown>> {
  const own = manifestOf(workspaces, PUBLIC)
  const { name, version, description, license, engines, peerDependencies = {}, peerDependenciesMeta } = own
  const dependencies = dependenciesOf(workspaces, inside, peerDependencies)
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
    peerDependenciesMeta,
  }
}

function dependenciesOf(
  workspaces: ReadonlyMap<string, Workspace>,
  inside: ReadonlySet<string>,
  peers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const found = new Map<string, string>()
  for (const name of inside) {
    for (const [one, version] of Object.entries(manifestOf(workspaces, name).dependencies ?? {})) {
      if (workspaces.has(one) || one in peers) continue
      const before = found.get(one)
      if (before !== undefined && before !== version) {
        throw new Error(`${one} is wanted as ${before} and as ${version}: choose one version.`)
      }
      found.set(one, version)
    }
  }
  return Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)))
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
