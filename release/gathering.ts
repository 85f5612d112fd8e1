import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { filesNamedIn, importsIn, packageOf, withImports } from './specifiers.ts'
import { PUBLIC } from './workspace.ts'
import type { Workspace } from './workspace.ts'

/** One file of the tarball: where it lies in it, and what it holds. */
export interface GatheredFile {
  readonly path: string
  readonly content: string
}

export interface Gathered {
  readonly files: readonly GatheredFile[]
  /** Packages of this repository that are inside. */
  readonly inside: ReadonlySet<string>
  /** Packages from elsewhere that the code imports. */
  readonly outside: ReadonlySet<string>
}

/**
 * Follows the imports from the entries through the packages of this repository, and rewrites names of packages to relative
 * paths. What no entry reaches stays out, also what an earlier build has left in `dist`.
 */
export class Gathering {
  readonly #workspaces: ReadonlyMap<string, Workspace>
  readonly #files = new Map<string, GatheredFile>()
  readonly #inside = new Set<string>()
  readonly #outside = new Set<string>()

  constructor(workspaces: ReadonlyMap<string, Workspace>) {
    this.#workspaces = workspaces
  }

  get gathered(): Gathered {
    return { files: [...this.#files.values()], inside: this.#inside, outside: this.#outside }
  }

  /** Takes a built file and all that it imports. */
  add(entry: string): void {
    const waiting = [entry]
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      if (this.#files.has(file)) continue
      if (!existsSync(file)) throw new Error(`${file} is not built. Run "npm run build".`)
      waiting.push(...this.#take(file))
    }
  }

  /** Where a built file lies in the tarball. */
  placeOf(file: string): string {
    const { name, directory } = this.#ownerOf(file)
    const inDist = relative(join(directory, 'dist'), file).split(sep).join('/')
    if (inDist.startsWith('..')) throw new Error(`${file} lies outside of what is built.`)
    return name === PUBLIC ? `dist/${inDist}` : `dist/internal/${basename(directory)}/${inDist}`
  }

  #take(file: string): readonly string[] {
    this.#inside.add(this.#ownerOf(file).name)
    const code = readFileSync(file, 'utf8')
    const path = this.placeOf(file)
    const next: string[] = []
    const rewrite = (specifier: string): string => {
      const target = this.#targetOf(specifier, file)
      if (target === undefined) return specifier
      next.push(target)
      return relativeImport(path, this.placeOf(target))
    }
    this.#files.set(file, { path, content: withImports(code, rewrite) })
    const beside = filesNamedIn(code).map((name) => resolve(dirname(file), name))
    return [...next, ...beside.filter((one) => basename(one) !== 'package.json')]
  }

  /** The file that an import means, if it is one of ours. */
  #targetOf(specifier: string, from: string): string | undefined {
    const isTyped = from.endsWith('.d.ts')
    if (specifier.startsWith('.')) {
      const target = resolve(dirname(from), specifier)
      return isTyped ? target.replace(/(?:\.d)?\.[jt]s$/, '.d.ts') : target
    }
    const name = packageOf(specifier)
    const workspace = this.#workspaces.get(name)
    if (workspace === undefined) {
      if (!name.startsWith('node:')) this.#outside.add(name)
      return undefined
    }
    const target = workspace.manifest.exports?.[`.${specifier.slice(name.length)}`]?.[isTyped ? 'types' : 'default']
    if (target === undefined) throw new Error(`${from} imports ${specifier}, which ${name} does not export.`)
    return join(workspace.directory, target)
  }

  #ownerOf(file: string): { readonly name: string; readonly directory: string } {
    for (const [name, { directory }] of this.#workspaces) {
      if (file.startsWith(join(directory, sep))) return { name, directory }
    }
    throw new Error(`${file} belongs to no package of this repository.`)
  }
}

function relativeImport(from: string, to: string): string {
  const path = relative(dirname(from), to)
    .split(sep)
    .join('/')
    .replace(/\.d\.ts$/, '.js')
  return path.startsWith('.') ? path : `./${path}`
}

/** Imports of a text that name packages of this repository; a tarball has none. */
export function namesLeft(content: string, workspaces: ReadonlyMap<string, Workspace>): readonly string[] {
  return importsIn(content).filter((specifier) => workspaces.has(packageOf(specifier)))
}
