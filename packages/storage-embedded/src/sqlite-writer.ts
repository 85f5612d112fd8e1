import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import type { FileIdentity } from './file-identity.ts'
import { filesGone, FILES_GONE } from './file-identity.ts'
import { PRAGMAS } from './sqlite-schema.ts'
import { DROP, DROP_AT, EXPIRED, HAS_EXPIRED, IS_NUMBER, SWEEP_AT, WRITE_STATEMENTS } from './sqlite-write.ts'
import type { PackedWrite } from './sqlite-write.ts'
import { PROGRAM } from './sqlite-writer-program.ts'

/** What one write deletes of the expired, in bytes of their data: zeros of that size are written in their place. */
const SWEEP_BYTES_MAX = 8_388_608
/** How long the log may show what was deleted, while the storage is busy. Emptying it takes a flush of the whole file. */
const LOG_SHOWS_MS = 10_000
/** Free pages that stay in the file: 1 MB, which a busy storage uses again at once. */
const KEPT_PAGES = 256
/** Given back at a time: 1 MB, some milliseconds; and so long of each second, while there is other work. */
const STEP_PAGES = 256
const HOUSE_MS = 50

type Answer =
  | { readonly hasRemains: boolean }
  | { readonly failure: string; readonly isGone: boolean }
  | { readonly gone: string }

/** Writes in a thread of its own, so that waiting for the disk does not hold up the event loop. One write at a time. */
export class SqliteWriter {
  readonly #worker: Worker
  readonly #exited: Promise<void>
  #onBroken: ((error: Error) => void) | undefined = undefined
  #done: ((outcome: boolean | Error) => void) | undefined = undefined
  #failure: Error | undefined = undefined

  constructor(file: string, files: readonly FileIdentity[]) {
    const driver = createRequire(import.meta.url).resolve('@photostructure/sqlite')
    this.#worker = new Worker(PROGRAM, {
      eval: true,
      workerData: {
        driver,
        file,
        files,
        filesGone: FILES_GONE,
        pragmas: PRAGMAS,
        statements: WRITE_STATEMENTS,
        isNumber: IS_NUMBER,
        hasExpired: HAS_EXPIRED,
        expired: EXPIRED,
        drop: DROP,
        dropAt: DROP_AT,
        sweepAt: SWEEP_AT,
        sweepBytes: SWEEP_BYTES_MAX,
        sweepMs: LOG_SHOWS_MS,
        houseMs: HOUSE_MS,
        keptPages: KEPT_PAGES,
        stepPages: STEP_PAGES,
      },
    })
    // An idle storage must not keep the process alive.
    this.#worker.unref()
    this.#worker.on('message', (answer: Answer) => this.#answered(answer))
    this.#worker.on('error', (error) => this.#break(error instanceof Error ? error : new Error(String(error))))
    this.#exited = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#break(new Error('The thread that writes has ended.'))
        resolve()
      })
    })
  }

  /** Something is wrong that no write has met yet. */
  onBroken(listener: (error: Error) => void): void {
    this.#onBroken = listener
  }

  /** One part after the other, in one transaction. True if records are left that have expired. */
  async write(parts: Iterable<PackedWrite>): Promise<boolean> {
    let hasRemains = false
    for (const part of parts) hasRemains = await this.#send(part)
    return hasRemains
  }

  async close(): Promise<void> {
    // From now on its end is nothing to report.
    this.#onBroken = undefined
    this.#worker.ref()
    this.#worker.postMessage('close')
    await this.#exited
  }

  #send(part: PackedWrite): Promise<boolean> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#worker.ref()
    return new Promise((resolve, reject) => {
      this.#done = (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome))
      this.#worker.postMessage(part)
    })
  }

  #answered(answer: Answer): void {
    if ('gone' in answer) this.#break(filesGone())
    else if ('failure' in answer) this.#finish(answer.isGone ? filesGone() : new Error(answer.failure))
    else this.#finish(answer.hasRemains)
  }

  #finish(outcome: boolean | Error): void {
    const done = this.#done
    this.#done = undefined
    this.#worker.unref()
    done?.(outcome)
  }

  #break(error: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    if (this.#done !== undefined) this.#finish(error)
    else this.#onBroken?.(error)
  }
}
