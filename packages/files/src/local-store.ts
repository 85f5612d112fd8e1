import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { access, mkdir, open, opendir, readdir, realpath, rename, rmdir, stat, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { ImpresarioError, mustBeFileName } from '@impresario/protocol'
import { resolveRange } from './byte-range.ts'
import { CheckedBody } from './checked-body.ts'
import type {
  ByteRange,
  FileContent,
  FileListing,
  FileStore,
  ListOptions,
  PutOptions,
  StoredFile,
  WrittenFile,
} from './file-store.ts'
import { FirstKeys } from './first-keys.ts'
import type { Gate } from './gate.ts'
import { keyOfPath, pathOfKey } from './local-path.ts'

/** No key begins with a dot on disk, so that nothing else is ever in here. */
const UPLOADS = '.uploads'
const PAGE_DEFAULT = 1_000
const READ_BYTES = 262_144
/** A file that another process writes grows: after an hour without a byte that process is gone. */
const IDLE_MS_MAX = 3_600_000

/**
 * Files in a directory. An upload is written into `.uploads`, made durable, and renamed to its place: a file is there whole
 * or not at all, also after a power cut. Links are not followed, wherever they stand below the directory.
 */
export class LocalStore implements FileStore {
  readonly bucket: string
  readonly #root: string
  readonly #gate: Gate
  /** Uploads of this process that are under way. */
  readonly #drafts = new Set<string>()

  constructor(options: { readonly directory: string; readonly bucket: string; readonly gate: Gate }) {
    this.bucket = options.bucket
    this.#root = options.directory
    this.#gate = options.gate
  }

  async check(): Promise<void> {
    try {
      await mkdir(join(this.#root, UPLOADS), { recursive: true, mode: 0o700 })
      await access(this.#root, constants.R_OK | constants.W_OK)
    } catch (error) {
      throw unavailable(error)
    }
  }

  async put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions = {}): Promise<WrittenFile> {
    mustBeFileName('key', key)
    const leave = await this.#gate.enter(1, options.signal)
    const name = randomUUID()
    const draft = join(this.#root, UPLOADS, name)
    this.#drafts.add(name)
    try {
      const checked = new CheckedBody(body, options)
      const stats = await this.#write(draft, checked)
      await this.#moveTo(key, draft)
      return { ...describe(key, stats), sha256: checked.sha256 }
    } catch (error) {
      await unlink(draft).catch(() => undefined)
      throw asRefusal(error)
    } finally {
      this.#drafts.delete(name)
      leave()
    }
  }

  async get(key: string, range?: ByteRange): Promise<FileContent | undefined> {
    mustBeFileName('key', key)
    const leave = await this.#gate.enter()
    let handle: FileHandle | undefined
    try {
      handle = await this.#open(key)
      if (handle === undefined) {
        leave()
        return undefined
      }
      const file = describe(key, await handle.stat({ bigint: true }))
      const span = range === undefined ? undefined : resolveRange(range, file.bytes)
      const body = handle.createReadStream({ ...span, highWaterMark: READ_BYTES })
      return { file, range: span, body: body.once('close', leave) }
    } catch (error) {
      await handle?.close()
      leave()
      throw asRefusal(error)
    }
  }

  async head(key: string): Promise<StoredFile | undefined> {
    mustBeFileName('key', key)
    const leave = await this.#gate.enter()
    try {
      const handle = await this.#open(key)
      if (handle === undefined) return undefined
      try {
        return describe(key, await handle.stat({ bigint: true }))
      } finally {
        await handle.close()
      }
    } catch (error) {
      throw asRefusal(error)
    } finally {
      leave()
    }
  }

  async list(prefix: string, { after, limit = PAGE_DEFAULT }: ListOptions = {}): Promise<FileListing> {
    const leave = await this.#gate.enter()
    try {
      const found = new FirstKeys(limit, after)
      for await (const path of this.#walk(this.#folderOf(prefix))) {
        const key = keyOfPath(relative(this.#root, path))
        if (key === undefined || !key.startsWith(prefix)) continue
        // It may have been deleted meanwhile.
        const stats = await stat(path, { bigint: true }).catch(() => undefined)
        if (stats !== undefined) found.add(describe(key, stats))
      }
      return found.listing()
    } catch (error) {
      throw asRefusal(error)
    } finally {
      leave()
    }
  }

  async *folders(prefix: string): AsyncGenerator<string> {
    yield* this.#foldersIn(this.#folderOf(prefix), '')
  }

  async *#foldersIn(directory: string, begun: string): AsyncGenerator<string> {
    const entries = await opendir(directory).catch(ifMissing)
    for await (const entry of entries ?? []) {
      if (!entry.isDirectory()) continue
      const path = `${begun}${entry.name}`
      if (path.endsWith('~')) yield* this.#foldersIn(join(directory, entry.name), `${path}/`)
      const name = path.endsWith('+') ? keyOfPath(path.slice(0, -1)) : undefined
      if (name !== undefined) yield name
    }
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      mustBeFileName('key', key)
      const leave = await this.#gate.enter()
      try {
        const path = join(this.#root, pathOfKey(key))
        if ((await this.#isPlainFolder(dirname(path))) && (await unlink(path).then(isDone, ifMissing)) === true) {
          await this.#removeEmpty(dirname(path))
        }
      } catch (error) {
        throw asRefusal(error)
      } finally {
        leave()
      }
    }
  }

  presign(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  async sweep(idleMs: number): Promise<number> {
    const uploads = join(this.#root, UPLOADS)
    let removed = 0
    for (const name of (await readdir(uploads).catch(ifMissing)) ?? []) {
      if (this.#drafts.has(name)) continue
      const path = join(uploads, name)
      const stats = await stat(path).catch(() => undefined)
      // A clock that was set back must not keep what is left for ever.
      if (stats === undefined || Math.abs(Date.now() - stats.mtimeMs) < Math.min(idleMs, IDLE_MS_MAX)) continue
      await unlink(path).catch(ifMissing)
      removed += 1
    }
    return removed
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #write(draft: string, body: CheckedBody): Promise<BigIntStats> {
    await mkdir(dirname(draft), { recursive: true, mode: 0o700 })
    const handle = await open(draft, 'wx', 0o600)
    try {
      for await (const chunk of body.read()) await writeAll(handle, chunk)
      await handle.sync()
      return await handle.stat({ bigint: true })
    } finally {
      await handle.close()
    }
  }

  async #moveTo(key: string, draft: string): Promise<void> {
    const path = join(this.#root, pathOfKey(key))
    for (let attempt = 1; ; attempt += 1) {
      const first = await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      if (!(await this.#isPlainFolder(dirname(path)))) throw outside()
      try {
        await rename(draft, path)
        await this.#syncFolders(dirname(path), first)
        return
      } catch (error) {
        // Whoever deleted the last file in the folder has deleted the folder too.
        if (!isMissing(error) || attempt === 10) throw error
      }
    }
  }

  /** The folder of a new file, and every folder that was made for it, with the one that they are named in. */
  async #syncFolders(folder: string, firstMade: string | undefined): Promise<void> {
    const last = firstMade === undefined ? folder : dirname(firstMade)
    for (let one = folder; ; one = dirname(one)) {
      const handle = await open(one, constants.O_RDONLY | constants.O_DIRECTORY).catch(ifMissing)
      try {
        await handle?.sync()
      } finally {
        await handle?.close()
      }
      if (one === last || one === this.#root || one === dirname(one)) return
    }
  }

  async #open(key: string): Promise<FileHandle | undefined> {
    const path = join(this.#root, pathOfKey(key))
    if (!(await this.#isPlainFolder(dirname(path)))) return undefined
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(ifMissing)
    if (handle === undefined || (await handle.stat()).isFile()) return handle
    await handle.close()
    return undefined
  }

  /** Whether no part of the way from our directory is a link. Not so either where there is no such folder. */
  async #isPlainFolder(folder: string): Promise<boolean> {
    const [real, root] = [await realpath(folder).catch(ifMissing), await realpath(this.#root).catch(ifMissing)]
    return real !== undefined && root !== undefined && real === join(root, relative(this.#root, folder))
  }

  #folderOf(prefix: string): string {
    const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
    if (folder === '') return this.#root
    mustBeFileName('prefix', folder.slice(0, -1))
    return join(this.#root, `${pathOfKey(folder.slice(0, -1))}+`)
  }

  async *#walk(folder: string): AsyncGenerator<string> {
    const directory = await opendir(folder).catch(ifMissing)
    for await (const entry of directory ?? []) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && entry.name !== UPLOADS) yield* this.#walk(path)
      else if (entry.isFile()) yield path
    }
  }

  async #removeEmpty(folder: string): Promise<void> {
    for (let one = folder; one.startsWith(this.#root) && one !== this.#root; one = dirname(one)) {
      try {
        await rmdir(one)
      } catch {
        return
      }
    }
  }
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let offset = 0; offset < chunk.byteLength;) {
    const { bytesWritten } = await handle.write(chunk, offset, chunk.byteLength - offset)
    offset += bytesWritten
  }
}

/** A file is never written again once it has its name: its inode, its size and its time of writing tell one from another. */
function describe(key: string, stats: BigIntStats): StoredFile {
  const etag = [stats.ino, stats.size, stats.mtimeNs].map((part) => part.toString(36)).join('-')
  return { key, bytes: Number(stats.size), etag, modifiedAt: Number(stats.mtimeMs) }
}

const isDone = (): true => true

function isMissing(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
}

function ifMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}

function outside(): ImpresarioError {
  return new ImpresarioError('FILES_UNAVAILABLE', 'The store of files has a link in it, which is not followed.')
}

const DISK_ERRORS = new Set([
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EIO',
  'EACCES',
  'EPERM',
  'EMFILE',
  'ENFILE',
  'ENOENT',
  'ENOTDIR',
])

/** What a disk refuses names paths of this machine: it stays in the cause. */
function asRefusal(error: unknown): unknown {
  return DISK_ERRORS.has(codeOf(error)) ? unavailable(error) : error
}

function unavailable(error: unknown): ImpresarioError {
  return new ImpresarioError('FILES_UNAVAILABLE', `The directory of files cannot be used (${codeOf(error)}).`, {
    cause: error,
  })
}
