import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Gathering, namesLeft } from './gathering.ts'
import { publishedManifest } from './manifest.ts'
import { PUBLIC, readWorkspaces } from './workspace.ts'
import type { Workspace } from './workspace.ts'

/** Beside the module that looks for it. */
const DASHBOARD_PLACE = 'dist/internal/dashboard/app'

const TEXTS = ['README.md', 'LICENSE', 'NOTICE']

/** Puts the package together from what is built, and packs it. Gives the path of the tarball. */
export function pack(root: string, outDirectory: string): string {
  const workspaces = readWorkspaces(root)
  const stage = join(outDirectory, 'package')
  rmSync(stage, { recursive: true, force: true })
  const gathering = new Gathering(workspaces)
  const command = join(directoryOf(workspaces, '@impresario/cli'), 'dist/main.js')
  gathering.add(command)
  for (const entry of entriesOf(workspaces)) gathering.add(entry)
  const { gathered } = gathering
  for (const { path, content } of gathered.files) {
    const left = namesLeft(content, workspaces)
    if (left.length > 0) throw new Error(`${path} still imports ${left.join(', ')}.`)
    put(join(stage, path), content)
  }
  const manifest = publishedManifest(workspaces, gathered, gathering.placeOf(command))
  const { name, version, type } = manifest
  put(join(stage, 'package.json'), json(manifest))
  // Parts of the program read their version beside what is built of them.
  put(join(stage, 'dist/internal/package.json'), json({ name, version, type }))
  cpSync(join(directoryOf(workspaces, '@impresario/dashboard'), 'dist/app'), join(stage, DASHBOARD_PLACE), {
    recursive: true,
  })
  for (const text of TEXTS) copyFileSync(join(root, text), join(stage, text))
  return packed(stage, outDirectory)
}

function entriesOf(workspaces: ReadonlyMap<string, Workspace>): readonly string[] {
  const directory = directoryOf(workspaces, PUBLIC)
  const entries = Object.values(workspaces.get(PUBLIC)?.manifest.exports ?? {})
  return entries.flatMap(({ types = '', default: code = '' }) => [join(directory, code), join(directory, types)])
}

function directoryOf(workspaces: ReadonlyMap<string, Workspace>, name: string): string {
  const workspace = workspaces.get(name)
  if (workspace === undefined) throw new Error(`There is no package ${name} in this repository.`)
  return workspace.directory
}

function put(file: string, content: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

function packed(stage: string, outDirectory: string): string {
  const command = ['pack', '--json', '--ignore-scripts', '--pack-destination', outDirectory]
  const answer = execFileSync('npm', command, { cwd: stage, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const [{ filename } = { filename: '' }] = JSON.parse(answer) as { readonly filename: string }[]
  return join(outDirectory, filename)
}
