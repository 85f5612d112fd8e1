import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, parse, relative, resolve as absolute } from 'node:path'

/** What the compiler says of some files. */
export interface TypeReport {
  /** Such as `blueprints/video.ts:12:5: Type 'string' is not assignable to type 'number'.` */
  readonly errors: readonly string[]
}

/** A compiler that hangs must not do so for ever; a large project takes seconds. */
const RUN_MS_MAX = 120_000
const OUTPUT_BYTES_MAX = 4_194_304

/**
 * Checks the types of files as `tsc --noEmit` does, with the TypeScript that is installed where they are and the options of
 * the `tsconfig.json` above them. Gives `undefined` where none is installed. Only errors in these files count: a project
 * may have others.
 */
export async function checkTypes(
  directory: string,
  files: readonly string[],
  signal?: AbortSignal,
): Promise<TypeReport | undefined> {
  const compiler = await compilerFor(directory)
  const typed = files.filter((file) => /\.[cm]?tsx?$/.test(file))
  if (compiler === undefined || typed.length === 0) return undefined
  const folder = await mkdtemp(join(tmpdir(), 'impresario-types-'))
  try {
    const config = join(folder, 'tsconfig.json')
    await writeFile(config, JSON.stringify(configFor(directory, typed)))
    return { errors: errorsIn(await run(compiler, config, signal), folder, new Set(typed)) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The script that `npx tsc` would run there. */
async function compilerFor(directory: string): Promise<string | undefined> {
  try {
    const manifest = createRequire(join(absolute(directory), 'index.js')).resolve('typescript/package.json')
    const { bin } = JSON.parse(await readFile(manifest, 'utf8')) as { readonly bin?: Readonly<Record<string, string>> }
    return bin?.['tsc'] === undefined ? undefined : join(dirname(manifest), bin['tsc'])
  } catch {
    return undefined
  }
}

/** A configuration of its own, because the one of the project may leave these files out, or be one of many. */
function configFor(directory: string, files: readonly string[]): object {
  const above = foldersAbove(directory)
  const base = above.map((folder) => join(folder, 'tsconfig.json')).find((file) => existsSync(file))
  const own = base === undefined ? { strict: true, module: 'nodenext', target: 'es2023', skipLibCheck: true } : {}
  return {
    ...(base === undefined ? {} : { extends: base }),
    compilerOptions: {
      ...own,
      noEmit: true,
      allowImportingTsExtensions: true,
      composite: false,
      incremental: false,
      declaration: false,
      declarationMap: false,
      emitDeclarationOnly: false,
      isolatedDeclarations: false,
      rootDir: parse(absolute(directory)).root,
      typeRoots: above.map((folder) => join(folder, 'node_modules/@types')).filter((folder) => existsSync(folder)),
    },
    files,
    include: [],
    references: [],
  }
}

function foldersAbove(directory: string): readonly string[] {
  const folders = [absolute(directory)]
  for (let folder = dirname(absolute(directory)); folder !== folders.at(-1); folder = dirname(folder)) {
    folders.push(folder)
  }
  return folders
}

/** Resolves with what it prints: errors in the code are no failure of the compiler. */
function run(compiler: string, config: string, signal: AbortSignal | undefined): Promise<string> {
  const options = { timeout: RUN_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX, windowsHide: true, cwd: dirname(config) }
  return new Promise((resolve) => {
    const args = [compiler, '--project', config, '--pretty', 'false']
    execFile(process.execPath, args, signal === undefined ? options : { ...options, signal }, (_error, stdout) =>
      resolve(stdout),
    )
  })
}

const ERROR = /^(?<file>\S.*)\((?<line>\d+),(?<column>\d+)\): error TS\d+: (?<message>.*)$/

function errorsIn(output: string, folder: string, files: ReadonlySet<string>): readonly string[] {
  const errors: string[] = []
  for (const line of output.split(/\r?\n/)) {
    const found = ERROR.exec(line)?.groups
    if (found === undefined) continue
    const file = absolute(folder, found['file'] ?? '')
    if (!files.has(file)) continue
    const shown = relative(process.cwd(), file)
    errors.push(`${shown.startsWith('..') ? file : shown}:${found['line']}:${found['column']}: ${found['message']}`)
  }
  return errors
}
