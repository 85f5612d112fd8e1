import { createWriteStream } from 'node:fs'
import { mkdir, open, realpath, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ImpresarioError, LIMITS, parseExact, stringifyExact } from '@impresario/protocol'
import type { FileRef, TaskFiles } from '@impresario/protocol'
import type { FileContent } from './file-store.ts'
import type { JobFiles } from './job-files.ts'

export interface HandlerFilesOptions {
  readonly files: JobFiles
  readonly jobId: string
  /** For local copies. Nothing else is in it; it is made with the first copy, and deleted by `release`. */
  readonly directory: string
  /** Whether the job may read the files of another one: those of the same client are no secret to it. */
  readonly mayRead: (jobId: string) => Promise<boolean>
}

/** The files of one job for one run of a handler. */
export class HandlerFiles implements TaskFiles {
  readonly #options: HandlerFilesOptions

  constructor(options: HandlerFilesOptions) {
    this.#options = options
  }

  async download(name: string): Promise<string> {
    const { directory } = this.#options
    const { content, path } = await this.#open(name)
    const target = join(directory, path)
    try {
      await mkdir(dirname(target), { recursive: true, mode: 0o700 })
      await pipeline(content.body, createWriteStream(target, { mode: 0o600 }))
    } finally {
      content.body.destroy()
    }
    return target
  }

  async upload(path: string, name: string = basename(path)): Promise<FileRef> {
    const { files, jobId } = this.#options
    const handle = await open(await realpath(path), 'r')
    try {
      const stats = await handle.stat()
      if (!stats.isFile()) throw new ImpresarioError('INVALID_REQUEST', `"${basename(path)}" is no file.`)
      const body = handle.createReadStream({ autoClose: false, highWaterMark: 262_144 })
      return files.ref(jobId, await files.put(jobId, name, body, { bytes: stats.size }))
    } finally {
      await handle.close()
    }
  }

  async readJson(name: string): Promise<unknown> {
    const { content } = await this.#open(name)
    if (content.file.bytes > LIMITS.fileJsonBytesMax) {
      content.body.destroy()
      const message = `"${name}" has more than ${LIMITS.fileJsonBytesMax} bytes. Read it with download.`
      throw new ImpresarioError('LIMIT_EXCEEDED', message)
    }
    const pieces: Buffer[] = []
    for await (const piece of content.body) pieces.push(Buffer.from(piece as Uint8Array))
    return parseExact(Buffer.concat(pieces).toString())
  }

  async writeJson(name: string, value: unknown): Promise<FileRef> {
    const { files, jobId } = this.#options
    const bytes = Buffer.from(stringifyExact(value))
    return files.ref(jobId, await files.put(jobId, name, only(bytes), { bytes: bytes.byteLength }))
  }

  async list(prefix = ''): Promise<readonly FileRef[]> {
    const { files, jobId } = this.#options
    const found: FileRef[] = []
    let after: string | undefined
    do {
      const page = await files.list(jobId, prefix, { after })
      found.push(...page.files.map((file) => files.ref(jobId, file)))
      after = page.next
    } while (after !== undefined)
    return found
  }

  /** Deletes the local copies. */
  async release(): Promise<void> {
    await rm(this.#options.directory, { recursive: true, force: true })
  }

  /** `path`: where a copy lies below the directory. Copies of other jobs' files do not meet those of our own. */
  async #open(given: string): Promise<{ readonly content: FileContent; readonly path: string }> {
    const { files, jobId } = this.#options
    const meant = given.startsWith('s3://') ? files.parseUri(given) : { jobId, name: given }
    if (meant === undefined) {
      throw new ImpresarioError(
        'INVALID_REQUEST',
        `"${given}" is no file of this server. Its addresses begin with s3://${files.store.bucket}/jobs/.`,
      )
    }
    const isReadable = meant.jobId === jobId || (await this.#options.mayRead(meant.jobId))
    const content = isReadable ? await files.get(meant.jobId, meant.name) : undefined
    if (content === undefined) throw new ImpresarioError('FILE_NOT_FOUND', `There is no file "${given}".`)
    return {
      content,
      path: join(meant.jobId === jobId ? 'own' : encodeURIComponent(meant.jobId).replaceAll('.', '%2E'), meant.name),
    }
  }
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes)
}
