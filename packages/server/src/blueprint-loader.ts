import { watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isBlueprint } from '@impresario/core'
import type { RunnableBlueprint } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'

type Import = (file: string) => Promise<unknown>

export interface LoadOptions {
  /** Read every module anew, also those that the blueprints import. For development. */
  readonly isFresh?: boolean
}

export interface LoadedBlueprint {
  readonly file: string
  readonly blueprint: RunnableBlueprint
}

/** Every blueprint that the files of a directory export. One bad file refuses all of them. */
export async function loadBlueprints(
  directory: string,
  options: LoadOptions = {},
): Promise<readonly LoadedBlueprint[]> {
  const files = await blueprintFiles(directory)
  const load = await importer(files, options.isFresh === true)
  /** A file may export what another one made: that is still one blueprint. */
  const found = new Map<RunnableBlueprint, string>()
  for (const file of files) {
    for (const blueprint of await exportedBlueprints(file, load)) {
      if (!found.has(blueprint)) found.set(blueprint, file)
    }
  }
  return [...found].map(([blueprint, file]) => ({ file, blueprint }))
}

async function blueprintFiles(directory: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true, recursive: true })
    return entries
      .filter((entry) => entry.isFile() && isSource(entry.name) && !entry.parentPath.includes('node_modules'))
      .map((entry) => resolve(join(entry.parentPath, entry.name)))
      .toSorted()
  } catch (error) {
    throw refusal(directory, 'the directory cannot be read', error)
  }
}

function isSource(name: string): boolean {
  return /\.(?:js|mjs|ts|mts)$/.test(name) && !/\.d\.m?ts$/.test(name) && !/\.test\.m?[jt]s$/.test(name)
}

/** Versions of Node that strip types read TypeScript by themselves; the others, and whoever reads anew, need a loader. */
async function importer(files: readonly string[], isFresh: boolean): Promise<Import> {
  const hasTypes = files.some((file) => /^\.m?ts$/.test(extname(file)))
  const isNative = 'typescript' in process.features && Boolean(process.features.typescript)
  if (!isFresh && (!hasTypes || isNative)) return (file) => import(pathToFileURL(file).href)
  const { register } = await import('tsx/esm/api')
  loads += 1
  const loader = register({ namespace: `impresario-${loads}` })
  return (file) => loader.import(pathToFileURL(file).href, import.meta.url)
}

/** Each load has modules of its own. */
let loads = 0

async function exportedBlueprints(file: string, load: Import): Promise<readonly RunnableBlueprint[]> {
  let module: unknown
  try {
    module = await load(file)
  } catch (error) {
    throw refusal(file, 'it cannot be loaded', error)
  }
  const exported = typeof module === 'object' && module !== null ? Object.values(module) : []
  return exported.filter(isBlueprint)
}

function refusal(place: string, problem: string, cause: unknown): ImpresarioError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new ImpresarioError('INVALID_BLUEPRINT', `${place}: ${problem}: ${reason}`, { cause })
}

/** Editors write a file in several steps; this much quiet means that it is done. */
const QUIET_MS = 100

/** Calls `changed` after the files of a directory have changed. Returns the way to end it. */
export function watchDirectory(directory: string, changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const watcher = watch(directory, { recursive: true }, () => {
    clearTimeout(timer)
    timer = setTimeout(changed, QUIET_MS)
  })
  return () => {
    clearTimeout(timer)
    watcher.close()
  }
}
