/** Peers are installed in separate folders with separate modules: users of the product never download them. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PEERS = fileURLToPath(new URL('../../peers', import.meta.url))

/** Some peers require it, so all contestants run on it, ours too. */
const NODE_MAJOR = 22

/** Installs missing modules. The lock file beside each `package.json` determines the versions. */
export function install(folder: string, node: string = process.execPath): void {
  const home = join(PEERS, folder)
  if (existsSync(join(home, 'node_modules', '.package-lock.json'))) return
  console.error(`installing ${folder} (once) …`)
  // The scripts of its modules must build for the Node that will run them.
  const env = { ...process.env, PATH: `${dirname(node)}:${process.env['PATH'] ?? ''}` }
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: home, env, stdio: 'inherit' })
}

/** The Node program that all contestants run on: this one if it is new enough, otherwise one from a package. */
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

/** Type boundary where a peer's modules get the types that we declared for the functions we call. */
export async function loadModules<Modules>(folder: string): Promise<Modules> {
  const modules: unknown = await import(new URL(`../../peers/${folder}/modules.mjs`, import.meta.url).href)
  return modules as Modules
}

/** Type boundary: a manifest has a version. */
function versionIn(manifest: string): string {
  return (JSON.parse(manifest) as { readonly version: string }).version
}
