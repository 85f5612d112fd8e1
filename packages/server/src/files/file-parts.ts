import type { Clock, Job, Log, Storage, Stored } from '@impresario/core'
import type { Settings } from '../config/config.ts'
import type { SecretKey } from '../config/secret-key.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { ClientFiles } from './client-files.ts'
import { FileJanitor } from './file-janitor.ts'
import { FileLinks } from './file-links.ts'
import { FileService } from './file-service.ts'
import { TaskFileDesk } from './task-file-desk.ts'

export interface FileParts {
  readonly fileService: FileService
  readonly fileJanitor: FileJanitor
  readonly fileLinks: FileLinks
  readonly taskFiles: TaskFileDesk
}

/** The limits that a client has of its own. */
export interface ClientLimits {
  readonly client: { readonly id: string }
  readonly filesMax?: number
  readonly filesBytesMax?: number
}

export interface FileGround {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
  readonly storage: Storage
  readonly secretKey: SecretKey
  readonly metrics: Metrics
  /** The directory of the storage; undefined if it is elsewhere or in memory. */
  readonly dataDirectory: string | undefined
  /** Whether several instances share the storage. */
  readonly isShared: boolean
  /** Those of clients.toml, as they are now. */
  readonly clients: () => readonly ClientLimits[]
}

export function createFiles(
  { settings, clock, log, storage, secretKey, metrics, dataDirectory, isShared, clients }: FileGround,
  readJob: (jobId: string) => Promise<Stored<Job> | undefined>,
): FileParts {
  const jobOf = async (jobId: string): Promise<Job | undefined> => (await readJob(jobId))?.value
  const { clientFilesMax, clientFilesBytesMax } = settings
  const accounts = new ClientFiles({
    storage,
    log,
    readJob: jobOf,
    limitsOf: (clientId) => {
      const own = clients().find(({ client }) => client.id === clientId)
      return { filesMax: own?.filesMax ?? clientFilesMax, bytesMax: own?.filesBytesMax ?? clientFilesBytesMax }
    },
    hasLimits: () =>
      clientFilesMax + clientFilesBytesMax > 0 ||
      clients().some(({ filesMax = 0, filesBytesMax = 0 }) => filesMax + filesBytesMax > 0),
    files: () => fileService.files,
  })
  const fileService = new FileService({ settings, dataDirectory, isShared, readJob: jobOf, log, metrics, accounts })
  const fileJanitor = new FileJanitor({
    service: fileService,
    clock,
    log,
    owner: secretKey.derive('files-owner').toString('hex'),
    existing: async (jobIds) => {
      const found = await Promise.all(
        jobIds.map(async (jobId) => ((await readJob(jobId)) === undefined ? [] : [jobId])),
      )
      return new Set(found.flat())
    },
    removesFiles: settings.s3AutoCleanup,
    recount: (isOver) => accounts.recount(isOver),
    everyMs: settings.filesSweepSeconds * 1_000,
    copiesDirectory: settings.taskFilesDir === '' ? undefined : settings.taskFilesDir,
  })
  const fileLinks = new FileLinks(secretKey, clock)
  const taskFiles = new TaskFileDesk({ service: fileService, storage, readJob: jobOf })
  return { fileService, fileJanitor, fileLinks, taskFiles }
}
