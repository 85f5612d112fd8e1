import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The command as users run it: the build, which `npm test` makes first. */
const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))

export interface CliOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** False: nothing reads its output, as after `| head -0`. */
  readonly hasReader?: boolean
  /** Gets all that was printed so far, whenever there is more. */
  readonly onOutput?: (stdout: string) => void
  readonly nodeOptions?: readonly string[]
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  const child = spawn(process.execPath, [...(options.nodeOptions ?? []), MAIN, ...args], {
    cwd: options.cwd,
    // Only what a program cannot do without: the developer's own settings change nothing here.
    env: { PATH: process.env['PATH'] ?? '', ...options.env },
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    options.onOutput?.(stdout)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  if (options.hasReader === false) child.stdout.destroy()
  // A program may end before it has read anything.
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { code, stdout, stderr }
}
