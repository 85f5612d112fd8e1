import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import type { FileIdentity } from './file-identity.ts'
import { filesGone, FILES_GONE } from './file-identity.ts'
import { PRAGMAS } from './sqlite-schema.ts'
import { DROP, DROP_AT, EXPIRED, HAS_EXPIRED, IS_NUMBER, SWEEP_AT, WRITE_STATEMENTS } from './sqlite-write.ts'
import type { PackedWrite } from './sqlite-write.ts'
import { PROGRAM } from './sqlite-writer-program.ts'

/**
 * Limit on the expired records that one write deletes, in bytes of data: SQLite overwrites that many bytes with zeros.
 */
const SWEEP_BYTES_MAX = 8_388_608
/**
 * How long deleted data may stay readable in the log while the storage is busy. Truncating the log flushes the whole
 * file.
 */
const LOG_SHOWS_MS = 10_000
/** Free pages that stay in the file: 1 MB, which a busy storage reuses at once. */
const KEPT_PAGES = 256
/**
 * Pages are released 1 MB at a time, which takes some milliseconds. While there is other work, this bounds the time per
 * second.
 */
const STEP_PAGES = 256
const HOUSE_MS = 50

/** Two messages of the largest size fit. */
const YOUNG_MB_MAX = 12

type Answer =
  | { readonly hasRemains: boolean }
  | { readonly failure: string; readonly isGone: boolean }
  | { readonly gone: string }

/** Writes in a separate thread, so that waiting for the disk does not block the event loop. One write at a time. */
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
      // What it is sent is garbage as soon as it is written. By itself V8 lets that grow to 48 MB before it looks.
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX },
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

  /** Reports an error that no write has encountered yet. */
  onBroken(listener: (error: Error) => void): void {
    this.#onBroken = listener
  }

  /** Sends the parts one after the other, in one transaction. Resolves to true if expired records remain. */
  async write(parts: Iterable<PackedWrite>): Promise<boolean> {
    let hasRemains = false
    for (const part of parts) hasRemains = await this.#send(part)
    return hasRemains
  }

  async close(): Promise<void> {
    // From here on, the end of the thread is not an error.
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
