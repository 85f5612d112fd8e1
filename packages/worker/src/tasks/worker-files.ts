import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readdir, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { LIMITS, fileNameProblem, parseExact, stringifyExact, type FileRef, type TaskFiles } from '@impresario/protocol'
import { transportFailure, type FileTransport } from '../transport/transport.ts'
import { InvalidInputError, PermanentError, TaskFailure, TransientError } from './failure.ts'

/** The files of a task's job, and a directory for local ones. */
export interface WorkerFiles extends TaskFiles {
  /** A directory for this task alone, inside of `WORKER_PAYLOAD_DIR`. It is deleted when the task has ended. */
  directory(): Promise<string>
}

export interface WorkerFilesOptions {
  readonly taskId: string
  /** Where the directories of all tasks are. */
  readonly payloadDir: string
  /** Nothing: the orchestrator, or the way to it, has no files. */
  readonly transport: FileTransport | undefined
  readonly signal: () => AbortSignal
}

/** Copies files of a job to this machine and back, and lets nothing else of this machine out. */
export class LocalFiles implements WorkerFiles {
  readonly #options: WorkerFilesOptions
  readonly #path: string
  #made: Promise<string> | undefined

  constructor(options: WorkerFilesOptions) {
    this.#options = options
    this.#path = join(resolve(options.payloadDir), `task-${options.taskId.replaceAll(/[^\w-]/g, '_').slice(-120)}`)
  }

  /** Whether there is anything to delete. */
  get isUsed(): boolean {
    return this.#made !== undefined
  }

  directory(): Promise<string> {
    this.#made ??= mkdir(this.#path, { recursive: true, mode: 0o700 }).then(async () => realpath(this.#path))
    return this.#made
  }

  async download(name: string): Promise<string> {
    const path = join(await this.directory(), pathOf(name))
    const content = await this.#asked(async (transport, taskId, signal) => transport.read(taskId, name, signal), name)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    try {
      await pipeline(content, createWriteStream(path, { mode: 0o600 }))
    } catch (error) {
      throw new TransientError(`The file "${name}" could not be copied here.`, { cause: error })
    }
    return path
  }

  /** Everything below an address that ends with `/`, into one directory. */
  async downloadFolder(uri: string): Promise<string> {
    const [, prefix = ''] = /^s3:\/\/[^/]+\/jobs\/[^/]+\/(.*)$/s.exec(uri) ?? []
    // Params come from clients: no folder of theirs leads out of the directory of the task.
    mustNameFile(prefix.replace(/\/$/, ''))
    const target = join(await this.directory(), prefix)
    await mkdir(target, { recursive: true, mode: 0o700 })
    for (const file of await this.list(prefix)) if (file.uri.startsWith(uri)) await this.download(file.name)
    return target
  }

  async upload(path: string, name?: string): Promise<FileRef> {
    const { real, own } = await this.#inside(path)
    const stats = await stat(real)
    if (!stats.isFile()) throw new PermanentError(`"${basename(path)}" is no file, and cannot be kept with the job.`)
    const given = name ?? relative(own, real).split(sep).join('/')
    mustNameFile(given)
    return this.#asked(async (transport, taskId, signal) => {
      const content = createReadStream(real, { highWaterMark: 262_144 })
      return transport.write(taskId, given, { content, bytes: stats.size }, signal)
    }, given)
  }

  /** A file or a folder that a handler has returned: the address that stands for it in the result. */
  async keep(path: string): Promise<string> {
    const { real, own } = await this.#inside(path)
    if (!(await stat(real)).isDirectory()) return (await this.upload(real)).uri
    const entries = await readdir(real, { withFileTypes: true, recursive: true })
    let base: string | undefined
    for (const entry of entries.filter((one) => one.isFile())) {
      const ref = await this.upload(join(entry.parentPath, entry.name))
      base ??= ref.uri.slice(0, ref.uri.length - ref.name.length)
    }
    if (base === undefined) throw new PermanentError(`"${basename(path)}" was returned, and is an empty folder.`)
    return `${base}${relative(own, real).split(sep).join('/')}/`
  }

  async readJson(name: string): Promise<unknown> {
    const content = await this.#asked(async (transport, taskId, signal) => transport.read(taskId, name, signal), name)
    const pieces: Uint8Array[] = []
    let bytes = 0
    for await (const piece of content) {
      bytes += piece.byteLength
      if (bytes > LIMITS.fileJsonBytesMax) {
        throw new PermanentError(`"${name}" has more than ${LIMITS.fileJsonBytesMax} bytes. Read it with download.`)
      }
      pieces.push(piece)
    }
    return parseExact(Buffer.concat(pieces).toString())
  }

  async writeJson(name: string, value: unknown): Promise<FileRef> {
    mustNameFile(name)
    const text = Buffer.from(stringifyExact(value))
    return this.#asked(
      async (transport, taskId, signal) =>
        transport.write(taskId, name, { content: only(text), bytes: text.byteLength }, signal),
      name,
    )
  }

  async list(prefix = ''): Promise<readonly FileRef[]> {
    return this.#asked(async (transport, taskId, signal) => transport.list(taskId, prefix, signal), prefix)
  }

  /** Deletes the directory of the task. */
  async release(): Promise<void> {
    await this.#made?.catch(() => undefined)
    if (this.#made !== undefined) await rm(this.#path, { recursive: true, force: true })
  }

  /** Refuses what lies elsewhere, also by way of a link. */
  async #inside(path: string): Promise<{ readonly real: string; readonly own: string }> {
    const own = await this.directory()
    const real = await realpath(resolve(own, path)).catch(() => undefined)
    if (real === undefined) throw new PermanentError(`There is no file "${basename(path)}" to keep with the job.`)
    if (real.startsWith(`${own}${sep}`)) return { real, own }
    throw new TaskFailure(
      'SECURITY_ERROR',
      `"${basename(path)}" lies outside of the directory of this task, and is not sent. Write it below task.files.directory().`,
    )
  }

  async #asked<T>(
    work: (transport: FileTransport, taskId: string, signal: AbortSignal) => Promise<T>,
    name: string,
  ): Promise<T> {
    const { transport, taskId, signal } = this.#options
    if (transport === undefined) throw new PermanentError('This orchestrator has no files for its workers.')
    try {
      return await work(transport, taskId, signal())
    } catch (error) {
      if (error instanceof TaskFailure) throw error
      const reason = error instanceof Error ? error.message : String(error)
      const isRefused = transportFailure(error) !== 'unavailable'
      const message = `The file "${name}" cannot be had: ${reason}`
      throw isRefused ? new InvalidInputError(message, { cause: error }) : new TransientError(message, { cause: error })
    }
  }
}

/** Where a copy lies below the task's directory. Those of other jobs do not meet our own. */
function pathOf(name: string): string {
  if (!name.startsWith('s3://')) {
    mustNameFile(name)
    return name
  }
  const [, job = '', file = ''] = /^s3:\/\/[^/]+\/jobs\/([^/]+)\/(.*)$/s.exec(name) ?? []
  mustNameFile(file)
  return job === '' ? file : join(`job-${job.replaceAll(/[^\w-]/g, '_')}`, file)
}

/** A name that is none today is none tomorrow: the task is not tried again. */
function mustNameFile(name: string): void {
  const problem = fileNameProblem(name)
  if (problem !== undefined) throw new InvalidInputError(`The name of a file ${problem}: ${JSON.stringify(name)}.`)
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes)
}
