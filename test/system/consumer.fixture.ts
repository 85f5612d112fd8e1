import { execFile, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const PROGRAMS = join(import.meta.dirname, 'programs/consumer')

interface Outcome {
  readonly code: number | null
  readonly output: string
}

/** The tools that a TypeScript user has beside the package, in the versions of this repository. */
const TOOLS = ['typescript', '@types/node', 'tsx', 'zod']

/** A folder that contains only what was packed and installed, as a user has it. */
export class Consumer {
  readonly folder: string
  readonly tarball: string
  readonly #programs: Program[] = []

  private constructor(folder: string, tarball: string) {
    this.folder = folder
    this.tarball = tarball
  }

  /** Packs, and installs the tarball with an empty cache. */
  static async install(): Promise<Consumer> {
    const parent = await mkdtemp(join(tmpdir(), 'impresario-consumer-'))
    await mustRun('npm', ['run', '--silent', 'pack', '--', join(parent, 'packed')], ROOT)
    const { version, devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      readonly version: string
      readonly devDependencies: Readonly<Record<string, string>>
    }
    const consumer = new Consumer(join(parent, 'project'), join(parent, 'packed', `impresario-${version}.tgz`))
    await mkdir(consumer.folder)
    await writeFile(join(consumer.folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
    const tools = TOOLS.map((name) => `${name}@${devDependencies[name]}`)
    const install = ['install', '--cache', join(parent, 'cache'), '--no-audit', '--no-fund']
    await mustRun('npm', [...install, consumer.tarball], consumer.folder)
    await mustRun('npm', [...install, '--save-dev', ...tools], consumer.folder)
    await cp(PROGRAMS, consumer.folder, { recursive: true })
    return consumer
  }

  run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
    return run(program, args, this.folder, env)
  }

  /** A program of the installed package, as `npx` finds it. */
  get command(): string {
    return join(this.folder, 'node_modules/.bin/impresario')
  }

  /** The files that the quick start tells its reader to write, in a separate folder. */
  async writeQuickStart(): Promise<string> {
    const page = await readFile(join(ROOT, 'docs/learn/quick-start.md'), 'utf8')
    const folder = join(this.folder, 'quick-start')
    const blocks = [...page.matchAll(/```(?:ts|json)\n(?:\/\/ (\S+)\n)?([\s\S]*?)```/g)]
    for (const [, path = 'tsconfig.json', content = ''] of blocks) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), content)
    }
    return folder
  }

  start(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Program {
    const started = new Program(program, args, this.folder, env)
    this.#programs.push(started)
    return started
  }

  async remove(): Promise<void> {
    for (const program of this.#programs) await program.end('SIGKILL')
    await rm(join(this.folder, '..'), { recursive: true, force: true })
  }
}

/** A program that runs until it is stopped. */
class Program {
  readonly #child
  readonly #closed: Promise<number | null>
  readonly #listeners = new Set<() => void>()
  output = ''

  constructor(program: string, args: readonly string[], cwd: string, env: Readonly<Record<string, string>>) {
    this.#child = spawn(program, args, {
      cwd,
      env: { ...plainEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const hear = (text: string): void => {
      this.output += text
      for (const listener of this.#listeners) listener()
    }
    this.#child.stdout.setEncoding('utf8').on('data', hear)
    this.#child.stderr.setEncoding('utf8').on('data', hear)
    this.#closed = new Promise((resolve) => this.#child.once('close', resolve))
  }

  /** The first match of the pattern in the output, as soon as it appears. */
  async says(pattern: RegExp): Promise<string> {
    const ended = this.#closed.then((code) => {
      throw new Error(`It ended with ${code} and never said ${pattern}:\n${this.output}`)
    })
    const found = new Promise<string>((resolve) => {
      const look = (): void => {
        const match = pattern.exec(this.output)
        if (match !== null) resolve(match[1] ?? match[0])
      }
      this.#listeners.add(look)
      look()
    })
    return Promise.race([found, ended])
  }

  async end(signal: 'SIGINT' | 'SIGKILL'): Promise<number | null> {
    if (this.#child.exitCode === null) this.#child.kill(signal)
    return this.#closed
  }
}

/**
 * Without the test runner's variables, so that programs run as in a terminal; npm's settings in the environment stay.
 */
function plainEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, VITEST: _vitest, NODE_ENV: _environment, ...rest } = process.env
  const own = Object.entries(rest).filter(([name]) => !/^npm_(?:package|lifecycle|command)/.test(name))
  return { ...Object.fromEntries(own), NO_COLOR: '1' }
}

function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { cwd, env: { ...plainEnvironment(), ...env }, maxBuffer: 50_000_000 }
    const child = execFile(program, args, options, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode, output: stdout + stderr })
    })
  })
}

async function mustRun(program: string, args: readonly string[], cwd: string): Promise<void> {
  const { code, output } = await run(program, args, cwd)
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${output}`)
}
