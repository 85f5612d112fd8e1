import { stat } from 'node:fs/promises'
import { outcome, PermanentError, TransientError } from '@impresario/worker'
import type { Task } from '@impresario/worker'
import type { Log } from '@impresario/core'
import type { FileRecord, Indexer } from '../index/indexer.ts'
import { ParseFailure } from '../parsing/parser.ts'
import type { DocumentParser, Fingerprint } from '../parsing/parser.ts'
import { nativePath, shownPath } from '../paths.ts'
import { TOKENIZER_VERSION } from '../text/tokens.ts'
import { Staging } from './staging.ts'
import type { Statistics } from './statistics.ts'
import type { TaskType } from './task.ts'
import type { TaskHandlers } from './worker-pool.ts'

export interface PipelineParts {
  readonly parser: DocumentParser
  readonly indexer: Indexer
  readonly statistics: Statistics
  readonly log: Log
  /** A file that changed so short a time ago may still be written, and is tried again when it cannot be read. */
  readonly freshMs: number
  /** The name of this process, which keeps what it reads until it is indexed. */
  readonly instance: string
}

/** Texts that were read and wait for their place in a transaction. */
const STAGED_BYTES_MAX = 16_777_216

/** The work of the four tasks. Each may run twice: what it does the second time changes nothing. */
export class Pipeline {
  readonly #parts: PipelineParts
  readonly #staging = new Staging(STAGED_BYTES_MAX)

  constructor(parts: PipelineParts) {
    this.#parts = parts
  }

  handlers(): TaskHandlers {
    return {
      parse: ({ path }, task) => this.#timed('parse', path, () => this.#parse(path, task)),
      index: ({ path }, { jobId }) => this.#timed('index', path, () => this.#store(path, jobId)),
      update: ({ path }, { jobId }) => this.#timed('update', path, () => this.#store(path, jobId)),
      delete: ({ path }) => this.#timed('delete', path, () => this.#delete(path)),
    }
  }

  async #parse(path: string, task: Task) {
    const { indexer } = this.#parts
    // In this order: once it is marked, no other file takes over its record.
    await indexer.mark(path, { status: 'running', attempts: task.attempt })
    const before = await indexer.file(path)
    try {
      return await this.#read(path, task, before)
    } catch (error) {
      if (error instanceof ParseFailure && error.code === 'GONE') return outcome('gone', {})
      throw await this.#failed(path, task, error)
    }
  }

  async #read(path: string, task: Task, before: FileRecord | undefined) {
    const { parser, indexer } = this.#parts
    const print = await parser.fingerprint(path)
    const isIndexed = before?.hash !== undefined
    if (isIndexed && before.hash === print.hash && before.tokenizer === TOKENIZER_VERSION) {
      await indexer.touch(path, print)
      return outcome('unchanged', {})
    }
    const moved = isIndexed ? undefined : await this.#movedFrom(path, print)
    const document = await parser.parseDocument(path)
    const after = await factsOf(path)
    if (after.size !== print.size || after.mtimeMs !== print.mtimeMs) {
      // What was read may be neither the old content nor the new.
      throw new ParseFailure('CHANGED', 'The file changed while it was read.')
    }
    this.#staging.put(task.jobId, { print, document, moved })
    const result = { by: this.#parts.instance }
    return isIndexed || moved !== undefined ? outcome('known', result) : result
  }

  /** The document with this content whose file is no longer where it was: it has been moved. */
  async #movedFrom(path: string, { hash }: Fingerprint): Promise<FileRecord | undefined> {
    for (const record of await this.#parts.indexer.withHash(hash, path)) {
      const isThere = await stat(nativePath(record.path)).then(
        () => record.path !== path,
        () => false,
      )
      if (!isThere) return record
    }
    return undefined
  }

  async #store(path: string, jobId: string) {
    const staged = this.#staging.take(jobId)
    if (staged === undefined) return outcome('lost', {})
    await this.#parts.indexer.put(path, staged.print, staged.document, staged.moved)
    return {}
  }

  async #delete(path: string): Promise<Record<string, never>> {
    await this.#parts.indexer.remove(path)
    return {}
  }

  /** Writes down why a file cannot be read, and says whether another try makes sense. */
  async #failed(path: string, task: Task, error: unknown): Promise<Error> {
    const { indexer, freshMs } = this.#parts
    const { size, mtimeMs } = await factsOf(path)
    const code = error instanceof ParseFailure ? error.code : 'INTERNAL'
    const message = error instanceof Error ? error.message : String(error)
    const isFresh = code === 'BROKEN' && Date.now() - mtimeMs < freshMs
    const change = { attempts: task.attempt, code, error: message }
    if (error instanceof ParseFailure && error.isPermanent && !isFresh) {
      await indexer.fail(path, { size, mtimeMs }, { ...change, status: 'failed' })
      return new PermanentError(`parse failed: ${message}`)
    }
    await indexer.mark(path, { ...change, status: 'retry' })
    return new TransientError(`parse failed: ${message}`)
  }

  async #timed<T>(type: TaskType, path: string, work: () => Promise<T>): Promise<T> {
    const { statistics, log } = this.#parts
    const ended = statistics.begin(type)
    try {
      const result = await work()
      ended('completed')
      return result
    } catch (error) {
      const isFinal = error instanceof PermanentError
      ended(isFinal ? 'failed' : 'retry')
      const reason = error instanceof Error ? error.message : String(error)
      log.warn('document task failed', { task: type, path: shownPath(path), reason, retry: !isFinal })
      throw error
    }
  }
}

async function factsOf(path: string): Promise<{ readonly size: number; readonly mtimeMs: number }> {
  try {
    return await stat(nativePath(path))
  } catch {
    return { size: 0, mtimeMs: 0 }
  }
}
