import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { WriteRefusedError } from './history.ts'
import { PROGRAM } from './sqlite-program.ts'

export interface ThreadOptions {
  readonly file: string
  readonly settings: readonly string[]
  readonly insert: string
  readonly isReader: boolean
}

interface Call {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

interface Failure {
  readonly message: string
  /** SQLite's extended error code. */
  readonly code: number | undefined
}

/** SQLite error codes: the value is too big, violates a constraint, or has another type. A retry would not help. */
const REFUSED = new Set([18, 19, 20])
/** The file is not, or no longer, a database. */
const BROKEN = new Set([11, 26])

/** A thread with its own connection. A call keeps the process alive, the thread alone does not. */
export class SqliteThread {
  readonly #thread: Worker
  readonly #exited: Promise<void>
  readonly #calls = new Map<number, Call>()
  #nextCall = 0
  #failure: Error | undefined

  constructor(options: ThreadOptions) {
    const driver = createRequire(import.meta.url).resolve('@photostructure/sqlite')
    const workerData = { ...options, driver }
    // What it is sent is garbage as soon as it is written. By itself V8 lets that grow to 48 MB before it looks.
    this.#thread = new Worker(PROGRAM, { eval: true, workerData, resourceLimits: { maxYoungGenerationSizeMb: 12 } })
    this.#thread.unref()
    this.#thread.on('message', (answer: unknown) => this.#answered(answer))
    this.#thread.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#exited = new Promise((resolve) => {
      this.#thread.on('exit', () => {
        this.#fail(new Error('The thread of the history has ended.'))
        resolve()
      })
    })
  }

  get hasEnded(): boolean {
    return this.#failure !== undefined
  }

  call(name: 'write' | 'trim' | 'read', argument: unknown): Promise<unknown> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#nextCall += 1
    const id = this.#nextCall
    this.#thread.ref()
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject })
      this.#thread.postMessage([id, name, argument])
    })
  }

  async close(): Promise<void> {
    this.#thread.ref()
    this.#thread.postMessage([0, 'close', null])
    await this.#exited
  }

  #answered(answer: unknown): void {
    const [id, value, failure] = answerOf(answer)
    const call = this.#calls.get(id)
    this.#calls.delete(id)
    if (this.#calls.size === 0) this.#thread.unref()
    if (failure === null) call?.resolve(value)
    else call?.reject(errorOf(failure))
  }

  #fail(error: Error): void {
    this.#failure ??= error
    for (const { reject } of this.#calls.values()) reject(error)
    this.#calls.clear()
  }
}

/** Type boundary for a reply of our own program. */
function answerOf(answer: unknown): readonly [id: number, value: unknown, failure: Failure | null] {
  return answer as [number, unknown, Failure | null]
}

function errorOf({ message, code = 0 }: Failure): Error {
  // The lower byte is the primary code; the rest is detail.
  const kind = code & 0xff
  if (BROKEN.has(kind)) return new WriteRefusedError(message, { isPartly: false })
  return REFUSED.has(kind) ? new WriteRefusedError(message, { isPartly: true }) : new Error(message)
}
