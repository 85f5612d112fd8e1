import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isBlueprint } from '@impresario/core'
import type { RunnableBlueprint } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { Register } from 'tsx/esm/api'

type Import = (file: string) => Promise<unknown>

export interface LoadOptions {
  /** Load every module again, also those that the blueprints import. For development. */
  readonly isFresh?: boolean
  /** Called with every file that a reload reads, also those that the blueprints import. */
  readonly onImport?: (file: string) => void
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
  const load = await importer(options)
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
    if (codeOf(error) === 'ENOENT') {
      const advice = 'Make it, or name another with --blueprints or BLUEPRINTS_DIR.'
      throw new ImpresarioError('INVALID_BLUEPRINT', `${directory}: there is no such directory. ${advice}`, {
        cause: error,
      })
    }
    throw refusal(directory, 'the directory cannot be read', error)
  }
}

function isSource(name: string): boolean {
  return /\.(?:js|mjs|ts|mts)$/.test(name) && !/\.d\.m?ts$/.test(name) && !/\.test\.m?[jt]s$/.test(name)
}

/**
 * Node reads what it can read by itself: JavaScript, and TypeScript where it strips types or a loader was given to the
 * process. A reload needs a loader with its own modules each time, which is a tool for development.
 */
async function importer({ isFresh = false, onImport }: LoadOptions): Promise<Import> {
  if (!isFresh) return (file) => import(pathToFileURL(file).href)
  const { register } = await freshLoader()
  loads += 1
  const loader = register({
    namespace: `impresario-${loads}`,
    onImport: (url) => {
      if (url.startsWith('file:')) onImport?.(fileURLToPath(url.replace(/[?#].*$/s, '')))
    },
  })
  return (file) => loader.import(pathToFileURL(file).href, import.meta.url)
}

async function freshLoader(): Promise<{ readonly register: Register }> {
  try {
    return await import('tsx/esm/api')
  } catch (cause) {
    if (codeOf(cause) !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      'Watching blueprints needs the package tsx, which is not installed. Run "npm install --save-dev tsx", or use ' +
        '"impresario start", which does not watch.',
      { cause },
    )
  }
}

/** Each load has modules of its own. */
let loads = 0

async function exportedBlueprints(file: string, load: Import): Promise<readonly RunnableBlueprint[]> {
  let module: unknown
  try {
    module = await load(file)
  } catch (error) {
    if (codeOf(error) === 'ERR_UNKNOWN_FILE_EXTENSION' && /\.m?ts/.test(String(error))) throw untyped(file, error)
    throw refusal(file, 'it cannot be loaded', error)
  }
  const exported = typeof module === 'object' && module !== null ? Object.values(module) : []
  return exported.filter(isBlueprint)
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}

function untyped(file: string, cause: unknown): ImpresarioError {
  const message =
    `${file}: Node ${process.versions.node} does not read TypeScript. Compile it to .js, or run Node 22.18 or newer. ` +
    'In development, "impresario dev" reads it in any case.'
  return new ImpresarioError('INVALID_BLUEPRINT', message, { cause })
}

function refusal(place: string, problem: string, cause: unknown): ImpresarioError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new ImpresarioError('INVALID_BLUEPRINT', `${place}: ${problem}: ${reason}`, { cause })
}
