import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../servers/free-port.ts'
import { Victim } from '../../system/victim.fixture.ts'

export const CLIENT_TOKEN = 'soak-client-0f31c9a27be84d65'
export const WORKER_TOKEN = 'soak-worker-57a2e8d1604fbb93'

const CLI = fileURLToPath(new URL('../../../apps/cli/dist/main.js', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('../../system/programs/soak', import.meta.url))
const LOOK_MS = 250

export interface ServerOptions {
  readonly heapMb: number
  /** How long jobs are kept after their end; zero for ever. */
  readonly retentionS: number
}

/** One real server process with a small heap, which is killed and restarted, and never ends by itself. */
export class ServerUnderTest {
  readonly directory = mkdtempSync(join(tmpdir(), 'impresario-soak-'))
  readonly url: string
  readonly #process: Victim
  #isMeantToRun = false
  #timer: NodeJS.Timeout | undefined
  /** The output of the process if it ended without being told to. */
  readonly deaths: string[] = []
  rssMbMax = 0
  onDeath: () => void = () => undefined

  private constructor(port: number, { heapMb, retentionS }: ServerOptions) {
    this.url = `http://127.0.0.1:${port}`
    this.#process = new Victim([`--max-old-space-size=${heapMb}`, CLI, 'start'], {
      API_HOST: '127.0.0.1',
      API_PORT: String(port),
      STORAGE_URL: `file:${this.directory}`,
      BLUEPRINTS_DIR: BLUEPRINTS,
      CLIENT_TOKEN,
      WORKER_TOKEN,
      WORKER_LEASE_SECONDS: '5',
      WORKER_PICKUP_SECONDS: '2',
      JOB_RETENTION_DAYS: String(retentionS / 86_400),
      JOB_MAX_RETRIES: '20',
      RATE_LIMITING_ENABLED: 'false',
      LOG_LEVEL: 'warn',
    })
  }

  static async start(options: ServerOptions): Promise<ServerUnderTest> {
    const server = new ServerUnderTest(await freePort(), options)
    await server.begin()
    server.#timer = setInterval(() => server.#look(), LOOK_MS)
    return server
  }

  get isUp(): boolean {
    return this.#isMeantToRun && this.#process.isRunning
  }

  get output(): string {
    return this.#process.output
  }

  async begin(): Promise<void> {
    this.#process.start()
    for (;;) {
      const answer = await fetch(`${this.url}/_public/ready`).catch(() => undefined)
      if (answer?.ok === true) break
      if (!this.#process.isRunning) throw new Error(`The server does not start: ${this.#process.output}`)
      await pause(50)
    }
    this.#isMeantToRun = true
  }

  /** Without a warning. */
  async kill(): Promise<void> {
    this.#isMeantToRun = false
    await this.#process.kill()
  }

  /** Stops it as an operator does; returns the exit code. */
  async stop(): Promise<number | null> {
    this.#isMeantToRun = false
    clearInterval(this.#timer)
    return this.#process.stop()
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }

  get rssMb(): number {
    const { pid } = this.#process
    try {
      const status = readFileSync(`/proc/${pid ?? 0}/status`, 'utf8')
      return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1_024)
    } catch {
      return 0
    }
  }

  get fileMb(): number {
    return Math.round(statSync(join(this.directory, 'impresario.db')).size / 1_048_576)
  }

  #look(): void {
    this.rssMbMax = Math.max(this.rssMbMax, this.rssMb)
    if (!this.#isMeantToRun || this.#process.isRunning) return
    this.#isMeantToRun = false
    this.deaths.push(this.#process.output.slice(-2_000))
    this.onDeath()
  }
}
