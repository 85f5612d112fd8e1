import { ImpresarioError, mustBeFileName } from '@impresario/protocol'
import type { FileRef } from '@impresario/protocol'
import type { ComingFile, FileAccounts, PromisedFile, Usage } from './file-accounts.ts'
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

const JOBS = 'jobs/'
const PAGE = 1_000

/** The files of jobs: which key each has, and how many and how large they may be. */
export class JobFiles {
  readonly store: FileStore
  readonly limits: JobFileLimits
  /** What uploads that are under way will add to their jobs. */
  readonly #coming = new Map<string, Set<Coming>>()
  /** The last look for room of each job: one looks after the other, so that each knows of all before it. */
  readonly #looking = new Map<string, Promise<unknown>>()

  readonly #accounts: FileAccounts | undefined

  constructor(store: FileStore, limits: JobFileLimits, accounts?: FileAccounts) {
    this.store = store
    this.limits = limits
    this.#accounts = accounts
  }

  async put(
    jobId: string,
    name: string,
    body: AsyncIterable<Uint8Array>,
    options: PutOptions = {},
  ): Promise<WrittenFile> {
    const key = keyOf(jobId, name)
    const { bytes } = options
    const reserved = await this.#reserve(jobId, key, bytes)
    let written: WrittenFile | undefined
    try {
      const bytesMax = Math.min(options.bytesMax ?? Infinity, reserved.bytesMax)
      written = await this.store.put(key, body, { ...options, bytesMax })
      return named(jobId, written)
    } finally {
      await reserved.release(written?.bytes)
    }
  }

  /** Refuses an upload that comes later, if it would be too much now. Keeps no room for it. */
  async mustHaveRoom(jobId: string, name: string, bytes: number): Promise<void> {
    const reserved = await this.#reserve(jobId, keyOf(jobId, name), bytes)
    await reserved.release(undefined)
  }

  /**
   * An address of the store that takes this file. There is room for it until the address has ended. Nothing where the store has no
   * such address, or too many of the job are open: then the upload has to come through this process, which counts it.
   */
  async presignUpload(jobId: string, name: string, bytes: number, expiresMs: number): Promise<string | undefined> {
    const key = keyOf(jobId, name)
    const accounts = this.#accounts
    if (accounts === undefined) return undefined
    const url = await this.store.presign(key, { method: 'PUT', bytes, expiresMs })
    if (url === undefined) return undefined
    const outcome = await this.#oneAtATime(jobId, async () => {
      for (;;) {
        const { version, coming } = await this.#room(jobId, key, bytes)
        // The promise adds to what counts there only what it is larger by.
        const added = { ...coming, promised: coming.replaces }
        const kept = await accounts.promise(jobId, { name, bytes, expiresMs, version }, added)
        if (kept !== 'conflict') return kept
      }
    })
    return outcome === 'kept' ? url : undefined
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
    const key = keyOf(jobId, name)
    const known = this.#accounts === undefined ? undefined : await this.store.head(key)
    const promised = (await this.#promised(jobId)).files.find((file) => file.name === name)
    await this.store.delete([key])
    if (known === undefined) return
    const bytes = Math.max(0, known.bytes - (promised?.bytes ?? 0))
    await this.#accounts?.removed(jobId, { files: promised === undefined ? 1 : 0, bytes })
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

  /** An address of the store that reads the file. Nothing: this store has none. */
  async presign(
    jobId: string,
    name: string,
    options: PresignOptions & { readonly method: 'GET' },
  ): Promise<string | undefined> {
    return this.store.presign(keyOf(jobId, name), options)
  }

  /** What counts: the files that are there, and those that may come by addresses of the store. */
  async usage(jobId: string): Promise<Usage> {
    const { files } = await this.#promised(jobId)
    return total(withPromised(jobId, await this.#all(jobId), files))
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

  async #promised(jobId: string): ReturnType<FileAccounts['promised']> {
    return (await this.#accounts?.promised(jobId)) ?? { version: 0, files: [] }
  }

  /** One look for room of a job after the other. */
  async #oneAtATime<T>(jobId: string, look: () => Promise<T>): Promise<T> {
    const last = this.#looking.get(jobId) ?? Promise.resolve()
    const own = last.then(look)
    const settled = own.catch(() => undefined)
    this.#looking.set(jobId, settled)
    try {
      return await own
    } finally {
      if (this.#looking.get(jobId) === settled) this.#looking.delete(jobId)
    }
  }

  /** Keeps room for one more file. Where its size is not known yet, it may take all that is left. */
  async #reserve(jobId: string, key: string, bytes: number | undefined): Promise<Reserved> {
    return this.#oneAtATime(jobId, async () => {
      const { coming } = await this.#room(jobId, key, bytes)
      const booked = await this.#accounts?.book(jobId, coming)
      const bytesMax = Math.min(coming.bytesMax, booked?.bytesMax ?? coming.bytesMax)
      const added: Coming = { key, bytes: bytes ?? bytesMax }
      const all = this.#coming.get(jobId) ?? new Set()
      this.#coming.set(jobId, all.add(added))
      return {
        bytesMax,
        release: async (written) => {
          all.delete(added)
          if (all.size === 0 && this.#coming.get(jobId) === all) this.#coming.delete(jobId)
          await booked?.settle(written)
        },
      }
    })
  }

  /** Refuses what is too much for the job. */
  async #room(jobId: string, key: string, bytes: number | undefined): Promise<Room> {
    const { fileBytesMax, jobFilesMax, jobBytesMax } = this.limits
    if (bytes !== undefined && bytes > fileBytesMax) throw tooLarge(fileBytesMax)
    const { version, files: promises } = await this.#promised(jobId)
    const before = [...(this.#coming.get(jobId) ?? [])]
    const there = await this.#all(jobId)
    const counted = withPromised(jobId, there, promises)
    const others = total(counted.filter((file) => file.key !== key))
    const coming = this.#comingBeside(jobId, before, new Set(there.map((file) => file.key)))
    if (others.files + coming.files >= jobFilesMax) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `The job has ${jobFilesMax} files, which is the most for one job.`)
    }
    const left = jobBytesMax - others.bytes - coming.bytes
    if (left < (bytes ?? 1)) {
      const message = `The files of the job may have ${jobBytesMax} bytes together, of which ${Math.max(left, 0)} are left.`
      throw new ImpresarioError('LIMIT_EXCEEDED', message)
    }
    const replaced = counted.find((file) => file.key === key)
    const promised = promises.find(({ name }) => keyOf(jobId, name) === key)?.bytes ?? 0
    const bytesMax = Math.min(fileBytesMax, left)
    const file = { isNew: replaced === undefined, bytes, bytesMax, replaces: replaced?.bytes ?? 0, promised }
    return { version, coming: file }
  }

  /**
   * What is on its way beside the files that a list has shown. An upload may have ended while the list was made, and its file be
   * missing there: so what was under way before counts too, unless its file is there.
   */
  #comingBeside(jobId: string, before: readonly Coming[], there: ReadonlySet<string>): Usage {
    const now = this.#coming.get(jobId) ?? new Set<Coming>()
    const ended = before.filter((one) => !now.has(one) && !there.has(one.key))
    const all = [...now, ...ended]
    return { files: all.length, bytes: all.reduce((sum, { bytes }) => sum + bytes, 0) }
  }
}

interface Room {
  /** Of the promises that were looked at. */
  readonly version: number
  readonly coming: ComingFile
}

interface Reserved {
  readonly bytesMax: number
  /** With the size of what was written, if anything was. */
  release(written: number | undefined): Promise<void>
}

/** An upload that is under way. */
interface Coming {
  readonly key: string
  readonly bytes: number
}

type Counted = Pick<StoredFile, 'key' | 'bytes'>

/** Under each name counts what is more: the file that is there, or the one that may come. */
function withPromised(
  jobId: string,
  there: readonly StoredFile[],
  promises: readonly PromisedFile[],
): readonly Counted[] {
  if (promises.length === 0) return there
  const all = new Map(there.map(({ key, bytes }) => [key, bytes]))
  for (const { name, bytes } of promises) {
    const key = keyOf(jobId, name)
    all.set(key, Math.max(bytes, all.get(key) ?? 0))
  }
  return [...all].map(([key, bytes]) => ({ key, bytes }))
}

function total(files: readonly Counted[]): Usage {
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
