import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface ServerProcess {
  readonly child: ChildProcess
  readonly address: string
}

interface ServerOptions {
  /** Where it keeps its file, and runs. */
  readonly directory: string
  /** Settings beside the address and the storage. */
  readonly env: Readonly<Record<string, string>>
  /** Where to write a profile of its CPU time; empty for none. */
  readonly profile?: string | undefined
}

const MAIN = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('blueprints', import.meta.url))

/** `impresario start` on its embedded file, as a process of its own. Resolves when it listens. */
export function startServer({ directory, env, profile = '' }: ServerOptions): Promise<ServerProcess> {
  const flags = profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const settings = {
    PATH: process.env['PATH'] ?? '',
    API_HOST: '127.0.0.1',
    API_PORT: '0',
    STORAGE_URL: `file:${join(directory, 'data')}`,
    BLUEPRINTS_DIR: BLUEPRINTS,
    ...env,
  }
  const stdio = ['ignore', 'pipe', 'inherit'] as const
  return listening(
    spawn(process.execPath, [...flags, MAIN, 'start'], { env: settings, cwd: directory, stdio: [...stdio] }),
  )
}

/** The process once it has printed its address. */
export async function listening(child: ChildProcess): Promise<ServerProcess> {
  const { stdout } = child
  if (stdout === null) throw new Error('The output of the server is not read.')
  const address = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error('The server ended.')))
    createInterface({ input: stdout }).on('line', (line) => {
      const [, found] = /"address":"(http:[^"]+)"/.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  return { child, address }
}
