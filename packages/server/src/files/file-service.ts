import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FilesOfJobs, Job, Log, TurnFiles } from '@impresario/core'
import { HandlerFiles, JobFiles, JobValues, openStore } from '@impresario/files'
import type { FileAccounts, FileStore } from '@impresario/files'
import { ImpresarioError } from '@impresario/protocol'
import type { Settings } from '../config/config.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { errorFields } from '../runtime/log.ts'
import { observedStore } from './observed-store.ts'

export interface FileServiceOptions {
  readonly settings: Settings
  /** Where the data of the storage lies; nothing if it is elsewhere or in memory. */
  readonly dataDirectory: string | undefined
  /** Whether the storage is on another machine, so that other instances may share it. */
  readonly isShared: boolean
  readonly readJob: (jobId: string) => Promise<Job | undefined>
  readonly log: Log
  readonly metrics: Metrics
  /** Where files of clients are counted. */
  readonly accounts: FileAccounts
}

/**
 * The store of files of this process. *New* → `start` → *open* → `stop` → *closed*. Where no store is configured it stays
 * without one, and says so to those who ask for files; everything else works.
 */
export class FileService implements FilesOfJobs {
  readonly #options: FileServiceOptions
  #files: JobFiles | undefined
  #values: JobValues | undefined
  #copies: string | undefined
  /** Made by us, and gone with us. */
  readonly #temporary: string[] = []

  constructor(options: FileServiceOptions) {
    this.#options = options
  }

  /** See `hasFileStore`, which tells the same before anything is open. */
  get isConfigured(): boolean {
    const { settings, dataDirectory, isShared } = this.#options
    return settings.s3EndpointUrl !== '' || settings.filesDir !== '' || dataDirectory !== undefined || !isShared
  }

  /** Refuses where there is no store. */
  get files(): JobFiles {
    if (this.#files !== undefined) return this.#files
    const message = this.isConfigured
      ? 'The store of files is not open.'
      : 'No store of files is configured. Set S3_ENDPOINT_URL, or FILES_DIR to a directory that all instances share.'
    throw new ImpresarioError('FILES_UNAVAILABLE', message)
  }

  /** Where large values of jobs' records are. Nothing where there is no store. */
  get values(): JobValues | undefined {
    return this.#values
  }

  get store(): FileStore | undefined {
    return this.#files?.store
  }

  async start(): Promise<void> {
    const { settings, log, accounts } = this.#options
    if (!this.isConfigured || this.#files !== undefined) return
    const store = observedStore(await this.#open(), this.#options.metrics)
    this.#values = new JobValues(store)
    const limits = {
      fileBytesMax: settings.fileBytesMax,
      jobFilesMax: settings.jobFilesMax,
      jobBytesMax: settings.jobFilesBytesMax,
    }
    this.#files = new JobFiles(store, limits, accounts)
    // A store that is away for a while must not keep jobs from running.
    if (settings.s3EndpointUrl === '') return
    await store.check().catch((error: unknown) => {
      log.warn('the store of files cannot be used; jobs run without it', {
        ...errorFields(error),
        bucket: store.bucket,
      })
    })
  }

  async stop(): Promise<void> {
    await this.#files?.store.close()
    this.#files = undefined
    this.#values = undefined
    await Promise.all(this.#temporary.splice(0).map(async (path) => rm(path, { recursive: true, force: true })))
  }

  /** The files of a job for one run of its handler. */
  open({ id: jobId, clientId }: { readonly id: string; readonly clientId: string }): TurnFiles {
    const { readJob, log } = this.#options
    const directory = join(this.#copiesDirectory(), `turn-${randomUUID()}`)
    const mayRead = async (other: string): Promise<boolean> => (await readJob(other))?.client.id === clientId
    const files = new HandlerFiles({ files: this.files, jobId, directory, mayRead })
    return {
      files,
      release: async () =>
        files.release().catch((error: unknown) => log.warn('local copies could not be deleted', errorFields(error))),
    }
  }

  #copiesDirectory(): string {
    this.#copies ??= this.#options.settings.taskFilesDir || join(tmpdir(), `impresario-task-files-${randomUUID()}`)
    if (this.#options.settings.taskFilesDir === '' && !this.#temporary.includes(this.#copies)) {
      this.#temporary.push(this.#copies)
    }
    return this.#copies
  }

  async #open(): Promise<FileStore> {
    const { settings } = this.#options
    const { s3EndpointUrl: endpoint, s3Region: region, s3AccessKey, s3SecretKey } = settings
    const keys = { accessKey: s3AccessKey || undefined, secretKey: s3SecretKey || undefined }
    return openStore({
      concurrencyMax: settings.s3MaxConcurrency,
      bucket: settings.s3DefaultBucket,
      s3: endpoint === '' ? undefined : { endpoint, region, ...keys },
      directory: endpoint === '' ? await this.#directory() : '',
    })
  }

  async #directory(): Promise<string> {
    const { settings, dataDirectory } = this.#options
    if (settings.filesDir !== '') return settings.filesDir
    if (dataDirectory !== undefined) return join(dataDirectory, 'files')
    const directory = await mkdtemp(join(tmpdir(), 'impresario-files-'))
    this.#temporary.push(directory)
    return directory
  }
}
