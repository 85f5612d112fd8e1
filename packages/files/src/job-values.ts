import { createHash } from 'node:crypto'
import { ImpresarioError } from '@impresario/protocol'
import type { FileStore } from './file-store.ts'
import { folderIn, jobIdIn } from './job-files.ts'

/** Not below `jobs/`: what is there belongs to users, who may list, replace and delete it. */
const VALUES = 'values/'
const PAGE = 1_000

/** Names a value of a job that is kept in the store: by its content, so that it is written once. */
export interface ValueRef {
  readonly sha256: string
  readonly bytes: number
}

/** Large values of jobs' records, kept in the store of files. */
export class JobValues {
  readonly #store: FileStore

  constructor(store: FileStore) {
    this.#store = store
  }

  /** Resolves when it is durable, and a record may refer to it. */
  async put(jobId: string, text: string): Promise<ValueRef> {
    const content = Buffer.from(text)
    const sha256 = createHash('sha256').update(content).digest('hex')
    await this.#store.put(keyOf(jobId, sha256), once(content), { bytes: content.length, sha256 })
    return { sha256, bytes: content.length }
  }

  /** Refuses what is not there, or is not what was written. */
  async get(jobId: string, { sha256, bytes }: ValueRef): Promise<string> {
    const found = await this.#store.get(keyOf(jobId, sha256))
    if (found === undefined) throw damaged(jobId, 'is missing')
    const pieces: Uint8Array[] = []
    let size = 0
    for await (const piece of found.body as AsyncIterable<Uint8Array>) {
      size += piece.length
      if (size > bytes) break
      pieces.push(piece)
    }
    const content = Buffer.concat(pieces)
    if (size === bytes && createHash('sha256').update(content).digest('hex') === sha256) return content.toString()
    throw damaged(jobId, 'was altered')
  }

  /** The ids of all jobs that have values here. */
  async *jobs(): AsyncGenerator<string> {
    for await (const folder of this.#store.folders(VALUES)) {
      const jobId = jobIdIn(VALUES, folder)
      if (jobId !== undefined) yield jobId
    }
  }

  /**
   * Removes the values of a job that is gone, except new ones: a value is written before the record of its job. Returns how
   * many were removed.
   */
  async deleteOld(jobId: string, before: number): Promise<number> {
    let removed = 0
    let after: string | undefined
    do {
      const { files, next } = await this.#store.list(folderIn(VALUES, jobId), { limit: PAGE, after })
      const old = files.filter(({ modifiedAt }) => modifiedAt < before)
      await this.#store.delete(old.map(({ key }) => key))
      removed += old.length
      after = next
    } while (after !== undefined)
    return removed
  }
}

function keyOf(jobId: string, sha256: string): string {
  return `${folderIn(VALUES, jobId)}${sha256}.json`
}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}

function damaged(jobId: string, what: string): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', `A part of job ${jobId} ${what} in the store of files.`)
}
