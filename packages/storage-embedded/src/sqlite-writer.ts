import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { PRAGMAS } from './sqlite-schema.ts'
import { HAS_EXPIRED, IS_NUMBER, SWEEP_AT, WRITE_STATEMENTS } from './sqlite-write.ts'
import type { PackedWrite } from './sqlite-write.ts'

/**
 * What runs in the thread: prepared statements, one transaction per message, an answer when it is on
 * disk. Text instead of a file of its own, because a thread cannot load TypeScript on Node 20, and
 * the package has to work from its sources (in tests) as well as built.
 */
const PROGRAM = `
'use strict'
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require(workerData.driver)
const db = new DatabaseSync(workerData.file)
for (const pragma of workerData.pragmas) db.exec(pragma)
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
const statements = workerData.statements.map((sql) => db.prepare(sql))
const hasExpired = db.prepare(workerData.hasExpired)

function write({ parts, shape, text, numbers }) {
  let value = 0
  let number = 0
  let offset = 0
  begin.run()
  parts.forEach(([width, runs], index) => {
    const statement = statements[index]
    const row = new Array(width)
    for (let run = 0; run < runs; run++) {
      for (let column = 0; column < width; column++) {
        const length = shape[value++]
        if (length >= 0) {
          row[column] = text.substring(offset, offset + length)
          offset += length
        } else row[column] = length === workerData.isNumber ? numbers[number++] : null
      }
      if (index !== workerData.sweepAt || hasExpired.get(row[0]) !== undefined) statement.run(...row)
    }
  })
  commit.run()
}

parentPort.on('message', (changes) => {
  if (changes === 'close') {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    parentPort.close()
    return
  }
  try {
    write(changes)
    parentPort.postMessage(undefined)
  } catch (error) {
    parentPort.postMessage(String(error && error.message || error))
  }
})
`

/** Writes in a thread of its own, so that waiting for the disk does not hold up the event loop. One write at a time. */
export class SqliteWriter {
  readonly #worker: Worker
  readonly #exited: Promise<void>
  #done: ((failure: Error | undefined) => void) | undefined = undefined
  #failure: Error | undefined = undefined

  constructor(file: string) {
    const driver = createRequire(import.meta.url).resolve('@photostructure/sqlite')
    this.#worker = new Worker(PROGRAM, {
      eval: true,
      workerData: {
        driver,
        file,
        pragmas: PRAGMAS,
        statements: WRITE_STATEMENTS,
        isNumber: IS_NUMBER,
        hasExpired: HAS_EXPIRED,
        sweepAt: SWEEP_AT,
      },
    })
    // An idle storage must not keep the process alive.
    this.#worker.unref()
    this.#worker.on('message', (failure: string | undefined) => {
      this.#finish(failure === undefined ? undefined : new Error(failure))
    })
    this.#worker.on('error', (error) => this.#break(error instanceof Error ? error : new Error(String(error))))
    this.#exited = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#break(new Error('The thread that writes has ended.'))
        resolve()
      })
    })
  }

  write(changes: PackedWrite): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#worker.ref()
    return new Promise((resolve, reject) => {
      this.#done = (failure) => (failure === undefined ? resolve() : reject(failure))
      this.#worker.postMessage(changes)
    })
  }

  async close(): Promise<void> {
    this.#worker.ref()
    this.#worker.postMessage('close')
    await this.#exited
  }

  #finish(failure: Error | undefined): void {
    const done = this.#done
    this.#done = undefined
    this.#worker.unref()
    done?.(failure)
  }

  #break(error: Error): void {
    this.#failure ??= error
    if (this.#done !== undefined) this.#finish(this.#failure)
  }
}
