import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** A process that is killed without warning and restarted, as often as a test requires. */
export class Victim {
  readonly #args: readonly string[]
  readonly #env: NodeJS.ProcessEnv
  #child: ChildProcess | undefined
  deaths = 0
  output = ''

  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    this.#args = args
    this.#env = env
  }

  start(): void {
    const child = spawn(process.execPath, this.#args, {
      env: { ...process.env, ...this.#env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const keep = (chunk: Buffer): void => {
      this.output = (this.output + chunk.toString()).slice(-20_000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    this.#child = child
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const child = this.#child
    if (child === undefined) return null
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
    }
    return child.exitCode
  }

  /** Resolves when it has ended, by itself or not. */
  async ended(): Promise<void> {
    if (this.isRunning && this.#child !== undefined) await once(this.#child, 'exit')
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.isRunning) this.#child?.kill(signal)
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
    this.deaths += 1
  }

  stop(): Promise<number | null> {
    return this.#end('SIGTERM')
  }
}
