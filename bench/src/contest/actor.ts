import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ended } from '../backing.ts'
import type { Answer, OrderName, Orders } from './orders.ts'

const PROGRAM = fileURLToPath(new URL('actor-main.js', import.meta.url))

type ArgumentOf<Name extends OrderName> = Parameters<Orders[Name]>
type AnswerTo<Name extends OrderName> = ReturnType<Orders[Name]>

/** A process of a contestant, seen from the one that measures. */
export class Actor {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #calls = 0

  constructor(options: {
    readonly node: string
    readonly name: string
    readonly variant: string
    readonly url: string
  }) {
    const { node, name, variant, url } = options
    // What Node itself warns of (an experimental module of a peer) is no news here.
    this.#child = fork(PROGRAM, [name, variant, url], { execPath: node, execArgv: ['--no-warnings'] })
    this.#child.on('message', (answer: Answer) => this.#take(answer))
    this.#child.on('exit', (code, signal) => this.#fail(new Error(`A process of ${name} ended (${code ?? signal}).`)))
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Rejects when it fails there, when the process ends, and when no answer comes in time. */
  ask<Name extends OrderName>(name: Name, timeoutMs: number, ...[argument]: ArgumentOf<Name>): Promise<AnswerTo<Name>> {
    this.#calls += 1
    const id = this.#calls
    return new Promise<AnswerTo<Name>>((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(id)
        reject(new Error(`No answer to "${name}" in ${timeoutMs} ms.`))
      }, timeoutMs)
      this.#waiting.set(id, {
        resolve: (value) => {
          clearTimeout(late)
          resolve(believed<AnswerTo<Name>>(value))
        },
        reject: (error) => {
          clearTimeout(late)
          reject(error)
        },
      })
      this.#child.send({ id, name, argument })
    })
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    await this.ask('close', 5_000).catch((error: unknown) => console.error(`  closing: ${String(error)}`))
    await ended(this.#child, 'SIGKILL')
  }

  #take({ id, value, error }: Answer): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve(value)
    else waiting?.reject(new Error(error))
  }

  #fail(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error)
    this.#waiting.clear()
  }
}

/** The boundary at which an answer of our own program is believed to be what `Orders` says. */
function believed<T>(value: unknown): T {
  return value as T
}
