import { ImpresarioError, mustBeFileName } from '@impresario/protocol'
import type { FileRef } from '@impresario/protocol'
import type {
  ByteRange,
  FileContent,
  FileListing,
  FileStore,
  ListOptions,
  PresignOptions,
  PutOptions,
  StoredFile,
  WrittenFile,
} from './file-store.ts'

export interface JobFileLimits {
  readonly fileBytesMax: number
  readonly jobFilesMax: number
  readonly jobBytesMax: number
}

export interface Usage {
  readonly files: number
  readonly bytes: number
}

const JOBS = 'jobs/'
const PAGE = 1_000

/** The files of jobs: which key each has, and how many and how large they may be. */
export class JobFiles {
  readonly store: FileStore
  readonly limits: JobFileLimits
  /** What uploads that are under way will add to their jobs. */
  readonly #coming = new Map<string, Usage>()

  constructor(store: FileStore, limits: JobFileLimits) {
    this.store = store
    this.limits = limits
  }

  async put(
    jobId: string,
    name: string,
    body: AsyncIterable<Uint8Array>,
    options: PutOptions = {},
  ): Promise<WrittenFile> {
    const key = keyOf(jobId, name)
    const { bytes } = options
    const end = await this.#reserve(jobId, key, bytes)
    try {
      const bytesMax = Math.min(options.bytesMax ?? Infinity, end.bytesMax)
      return named(jobId, await this.store.put(key, body, { ...options, bytesMax }))
    } finally {
      end.release()
    }
  }

  /** Refuses an upload that does not go through here, if it would be too much. */
  async mustHaveRoom(jobId: string, name: string, bytes: number): Promise<void> {
    const reserved = await this.#reserve(jobId, keyOf(jobId, name), bytes)
    reserved.release()
  }

  /** Nothing if there is no such file. */
  async get(jobId: string, name: string, range?: ByteRange): Promise<FileContent | undefined> {
    const content = await this.store.get(keyOf(jobId, name), range)
    return content && { ...content, file: named(jobId, content.file) }
  }

  async head(jobId: string, name: string): Promise<StoredFile | undefined> {
    const file = await this.store.head(keyOf(jobId, name))
    return file && named(jobId, file)
  }

  /** Keys in the answer are names within the job. */
  async list(jobId: string, prefix: string, options: ListOptions = {}): Promise<FileListing> {
    const folder = folderOf(jobId)
    const after = options.after === undefined ? undefined : `${folder}${options.after}`
    const { files, next } = await this.store.list(`${folder}${prefix}`, { ...options, after })
    return { files: files.map((file) => named(jobId, file)), next: next?.slice(folder.length) }
  }

  async delete(jobId: string, name: string): Promise<void> {
    await this.store.delete([keyOf(jobId, name)])
  }

  /** Returns what there was. */
  async deleteAll(jobId: string): Promise<Usage> {
    let [files, bytes] = [0, 0]
    for (;;) {
      const page = await this.store.list(folderOf(jobId), { limit: PAGE })
      await this.store.delete(page.files.map(({ key }) => key))
      files += page.files.length
      bytes += total(page.files).bytes
      if (page.next === undefined) return { files, bytes }
    }
  }

  async presign(jobId: string, name: string, options: PresignOptions): Promise<string | undefined> {
    return this.store.presign(keyOf(jobId, name), options)
  }

  async usage(jobId: string): Promise<Usage> {
    return total(await this.#all(jobId))
  }

  /** The ids of all jobs that have files. */
  async *jobs(): AsyncGenerator<string> {
    for await (const folder of this.store.folders(JOBS)) {
      const jobId = jobIdOf(folder)
      if (jobId !== undefined) yield jobId
    }
  }

  ref(jobId: string, file: StoredFile): FileRef {
    const { key: name, bytes, etag } = file
    return { name, uri: this.uri(jobId, name), bytes, etag }
  }

  uri(jobId: string, name: string): string {
    return `s3://${this.store.bucket}/${keyOf(jobId, name)}`
  }

  /** What an address of ours names. Nothing for any other text. */
  parseUri(uri: string): { readonly jobId: string; readonly name: string } | undefined {
    const start = `s3://${this.store.bucket}/${JOBS}`
    if (!uri.startsWith(start)) return undefined
    const end = uri.indexOf('/', start.length)
    const jobId = end === -1 ? undefined : jobIdOf(uri.slice(start.length, end))
    return jobId === undefined ? undefined : { jobId, name: uri.slice(end + 1) }
  }

  async #all(jobId: string): Promise<readonly StoredFile[]> {
    const found: StoredFile[] = []
    let after: string | undefined
    do {
      const { files, next } = await this.store.list(folderOf(jobId), { limit: PAGE, after })
      found.push(...files)
      after = next
    } while (after !== undefined && found.length <= this.limits.jobFilesMax)
    return found
  }

  /** Keeps room for one more file. Where its size is not known yet, it may take all that is left. */
  async #reserve(
    jobId: string,
    key: string,
    bytes: number | undefined,
  ): Promise<{ readonly bytesMax: number; release(): void }> {
    const { fileBytesMax, jobFilesMax, jobBytesMax } = this.limits
    if (bytes !== undefined && bytes > fileBytesMax) throw tooLarge(fileBytesMax)
    const others = total((await this.#all(jobId)).filter((file) => file.key !== key))
    const coming = this.#coming.get(jobId) ?? NOTHING
    if (others.files + coming.files >= jobFilesMax) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `The job has ${jobFilesMax} files, which is the most for one job.`)
    }
    const left = jobBytesMax - others.bytes - coming.bytes
    if (left < (bytes ?? 1)) {
      const message = `The files of the job may have ${jobBytesMax} bytes together, of which ${Math.max(left, 0)} are left.`
      throw new ImpresarioError('LIMIT_EXCEEDED', message)
    }
    const bytesMax = Math.min(fileBytesMax, left)
    const added = { files: 1, bytes: bytes ?? bytesMax }
    this.#coming.set(jobId, plus(coming, added))
    return {
      bytesMax,
      release: () => {
        const now = plus(this.#coming.get(jobId) ?? NOTHING, { files: -1, bytes: -added.bytes })
        if (now.files === 0) this.#coming.delete(jobId)
        else this.#coming.set(jobId, now)
      },
    }
  }
}

const NOTHING: Usage = { files: 0, bytes: 0 }

function plus(one: Usage, other: Usage): Usage {
  return { files: one.files + other.files, bytes: one.bytes + other.bytes }
}

function total(files: readonly StoredFile[]): Usage {
  return { files: files.length, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) }
}

function tooLarge(bytesMax: number): ImpresarioError {
  return new ImpresarioError('FILE_TOO_LARGE', `One file may have ${bytesMax} bytes.`)
}

/** A job's id is one part of the key: what could be read as more, or as another part, is escaped. */
export function folderIn(prefix: string, jobId: string): string {
  const escaped = encodeURIComponent(jobId).replace(/^\.+/, (dots) => '%2E'.repeat(dots.length))
  return `${prefix}${escaped}/`
}

/** The job whose folder this is. Nothing for a folder that is none of ours. */
export function jobIdIn(prefix: string, folder: string): string | undefined {
  try {
    const jobId = decodeURIComponent(folder)
    return folderIn(prefix, jobId) === `${prefix}${folder}/` ? jobId : undefined
  } catch {
    return undefined
  }
}

function folderOf(jobId: string): string {
  return folderIn(JOBS, jobId)
}

function jobIdOf(folder: string): string | undefined {
  return jobIdIn(JOBS, folder)
}

function keyOf(jobId: string, name: string): string {
  mustBeFileName('filename', name)
  const key = `${folderOf(jobId)}${name}`
  mustBeFileName('filename', key)
  return key
}

function named<File extends StoredFile>(jobId: string, file: File): File {
  return { ...file, key: file.key.slice(folderOf(jobId).length) }
}
