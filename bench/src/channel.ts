/** Calls from the measuring process to its child processes. One interface types both ends. */
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { ended } from './backing.ts'

type ArgumentsOf<Order> = Order extends (...args: infer Args) => unknown ? Args : never
type AnswerOf<Order> = Order extends (...args: never) => infer Value ? Value : never

/** What the program at the other end has to implement: a function for each command. `stop` calls `close`. */
export type Obeyed<Orders extends { close(): void }> = {
  readonly [Name in keyof Orders]: (...args: ArgumentsOf<Orders[Name]>) => Promise<AnswerOf<Orders[Name]>>
}

interface Call {
  readonly id: number
  readonly name: string
  readonly argument: unknown
}

interface Answer {
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

export interface Program {
  readonly node: string
  readonly file: string
  readonly args: readonly string[]
}

/** A child process, as the measuring process sees it. */
export class Subordinate<Orders extends { close(): void }> {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #calls = 0

  constructor({ node, file, args }: Program) {
    // Warnings of Node itself (an experimental module of a peer) are not relevant here.
    this.#child = fork(file, args, { execPath: node, execArgv: ['--no-warnings'] })
    this.#child.on('message', (answer: Answer) => this.#take(answer))
    this.#child.on('exit', (code, signal) => {
      this.#fail(new Error(`The process of ${args.join(' ')} ended (${code ?? signal}).`))
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Rejects if it fails there, if the process ends, and if no reply comes in time. */
  ask<Name extends keyof Orders & string>(
    name: Name,
    timeoutMs: number,
    ...[argument]: ArgumentsOf<Orders[Name]>
  ): Promise<AnswerOf<Orders[Name]>> {
    this.#calls += 1
    const id = this.#calls
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(id)
        reject(new Error(`No answer to "${name}" in ${timeoutMs} ms.`))
      }, timeoutMs)
      this.#waiting.set(id, {
        resolve: (value) => {
          clearTimeout(late)
          resolve(believed<AnswerOf<Orders[Name]>>(value))
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
    const close = this.ask('close', 5_000, ...believed<ArgumentsOf<Orders['close']>>([]))
    await close.catch((error: unknown) => console.error(`  closing: ${String(error)}`))
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

/** The other end: executes commands, and ends with its parent process. */
export function obeyParent<Orders extends { close(): void }>(obeyed: Obeyed<Orders>): void {
  const orders = new Map(Object.entries(believed<Record<string, (argument: unknown) => Promise<unknown>>>(obeyed)))
  const answer = async ({ id, name, argument }: Call): Promise<Answer> => {
    try {
      return { id, value: await orders.get(name)?.(argument) }
    } catch (error) {
      return { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    }
  }
  process.on('message', (call: Call) => {
    void answer(call).then((reply) => process.send?.(reply))
  })
  process.on('disconnect', () => process.exit(0))
}

/** Type boundary: messages on the channel have the types of the shared interface. */
function believed<T>(value: unknown): T {
  return value as T
}
