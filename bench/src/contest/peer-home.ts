/** Peers live in folders of their own, with modules of their own: newcomers to the product never download them. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PEERS = fileURLToPath(new URL('../../peers', import.meta.url))

/** Some peers ask for it; so everybody runs on it, ours too. */
const NODE_MAJOR = 22

/** Installs what is missing. The lock file beside each `package.json` says which versions. */
export function install(folder: string, node: string = process.execPath): void {
  const home = join(PEERS, folder)
  if (existsSync(join(home, 'node_modules', '.package-lock.json'))) return
  console.error(`installing ${folder} (once) …`)
  // The scripts of its modules must build for the Node that will run them.
  const env = { ...process.env, PATH: `${dirname(node)}:${process.env['PATH'] ?? ''}` }
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: home, env, stdio: 'inherit' })
}

/** The program that all contestants run on: this one if it is new enough, otherwise one from a package. */
export function contestNode(): string {
  if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR) return process.execPath
  install('node')
  return join(PEERS, 'node', 'node_modules', 'node', 'bin', 'node')
}

export function versionOf(folder: string, name: string): string {
  return versionIn(readFileSync(join(PEERS, folder, 'node_modules', name, 'package.json'), 'utf8'))
}

export function homeOf(folder: string): string {
  return join(PEERS, folder)
}

/** The boundary at which a peer's modules get the types that we wrote down for what we call of them. */
export async function loadModules<Modules>(folder: string): Promise<Modules> {
  const modules: unknown = await import(new URL(`../../peers/${folder}/modules.mjs`, import.meta.url).href)
  return modules as Modules
}

/** The boundary at which a manifest is believed to have a version. */
function versionIn(manifest: string): string {
  return (JSON.parse(manifest) as { readonly version: string }).version
}
