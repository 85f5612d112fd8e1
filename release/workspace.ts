import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What `package.json` of a workspace says, as far as the release needs it. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly description?: string
  readonly license?: string
  readonly exports?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly engines?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

export interface Workspace {
  readonly directory: string
  readonly manifest: Manifest
}

/** The one that users install. */
export const PUBLIC = 'impresario'

/** All packages of this repository, by name. */
export function readWorkspaces(root: string): ReadonlyMap<string, Workspace> {
  const grouped = ['packages', 'apps'].flatMap((group) =>
    readdirSync(join(root, group), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(root, group, entry.name)),
  )
  const found = [...grouped, join(root, 'examples')].map((directory): [string, Workspace] => {
    const manifest = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest
    return [manifest.name, { directory, manifest }]
  })
  return new Map(found)
}
