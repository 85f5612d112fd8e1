import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Clock, Log } from '@impresario/core'
import type { LedService, Term } from '@impresario/engine'
import type { JobFiles } from '@impresario/files'
import { errorFields } from '../runtime/log.ts'
import type { FileService } from './file-service.ts'

export interface FileJanitorOptions {
  readonly service: Pick<FileService, 'files' | 'store' | 'values'>
  readonly clock: Clock
  readonly log: Log
  /** Names this installation: whoever has another one shares the store by mistake. */
  readonly owner: string
  /** Which of these jobs exist. Throws where that cannot be known. */
  readonly existing: (jobIds: readonly string[]) => Promise<ReadonlySet<string>>
  /** Whether the files of a job go with it. */
  readonly removesFiles: boolean
  readonly everyMs: number
  /** Counts the files that are left, where clients have limits. */
  readonly recount: (isOver: () => boolean) => Promise<void>
  /** Where handlers' local copies lie, if it is a directory that outlives this process. */
  readonly copiesDirectory: string | undefined
}

/** Uploads of a day without an end have none: each is bounded by the silence that it may keep. */
const UPLOAD_IDLE_MS = 86_400_000
const COPIES_IDLE_MS = 86_400_000
/** A value is written before the first record of its job: so old, and no record comes any more. */
const VALUE_IDLE_MS = 3_600_000
const PAGE = 200
const OWNER = 'owner.txt'

/**
 * Removes the files of jobs that are gone, and what broken uploads have left. The record of a job ends by itself with its
 * retention, so that nobody hears of it; looking at the store finds what every crash and every other accident has left, too.
 *
 * A store that belongs to another installation is left alone: there none of its jobs exist.
 */
export class FileJanitor implements LedService {
  readonly name = 'file-janitor'
  readonly idleMs: number
  readonly #options: FileJanitorOptions
  #nextAt = Number.NEGATIVE_INFINITY

  constructor(options: FileJanitorOptions) {
    this.#options = options
    this.idleMs = options.everyMs
  }

  readonly isWanted = (): boolean => this.#options.service.store !== undefined

  readonly begin = async (): Promise<void> => {
    // Not at once: at a start there is enough to do, and who restarts often need not look at all files as often.
    this.#nextAt = this.#options.clock.now() + Math.min(this.#options.everyMs, FIRST_MS)
  }

  readonly round = async (term: Term): Promise<{ worked: number; nextInMs: number | undefined }> => {
    const { clock, everyMs, log } = this.#options
    const now = clock.now()
    if (now < this.#nextAt) return { worked: 0, nextInMs: this.#nextAt - now }
    this.#nextAt = now + everyMs
    try {
      return { worked: await this.sweep(() => term.isOver()), nextInMs: everyMs }
    } catch (error) {
      log.warn('files could not be looked through; the next round tries again', errorFields(error))
      return { worked: 0, nextInMs: everyMs }
    }
  }

  /** One look at everything. Returns how many files and uploads were removed. */
  async sweep(isOver: () => boolean = () => false): Promise<number> {
    const { service, log, removesFiles } = this.#options
    await this.#sweepCopies()
    const { files } = service
    const isOurs = await this.#isOurs(files)
    const uploads = isOurs ? await files.store.sweep(UPLOAD_IDLE_MS) : 0
    let removed = 0
    if (isOurs && removesFiles) {
      removed += await this.#removeOrphans(files, isOver, async (jobId) => (await files.deleteAll(jobId)).files)
    }
    const { values } = service
    if (isOurs && values !== undefined) {
      removed += await this.#removeOrphans(values, isOver, (jobId) =>
        values.deleteOld(jobId, Date.now() - VALUE_IDLE_MS),
      )
    }
    await this.#options.recount(isOver)
    if (uploads + removed > 0) log.info('files were removed', { files: removed, broken_uploads: uploads })
    return uploads + removed
  }

  async #removeOrphans(
    kept: Pick<JobFiles, 'jobs'>,
    isOver: () => boolean,
    remove: (jobId: string) => Promise<number>,
  ): Promise<number> {
    let removed = 0
    let page: string[] = []
    const flush = async (): Promise<void> => {
      const known = await this.#options.existing(page)
      for (const jobId of page) {
        if (!known.has(jobId) && !isOver()) removed += await remove(jobId)
      }
      page = []
    }
    for await (const jobId of kept.jobs()) {
      if (isOver()) return removed
      page.push(jobId)
      if (page.length === PAGE) await flush()
    }
    await flush()
    return removed
  }

  /** The first who looks at a store writes its name there. */
  async #isOurs({ store }: JobFiles): Promise<boolean> {
    const { owner, log } = this.#options
    const found = await store.get(OWNER)
    if (found === undefined) {
      await store.put(OWNER, Readable.from([Buffer.from(owner)]))
      return true
    }
    const pieces: Buffer[] = []
    for await (const piece of found.body) pieces.push(Buffer.from(piece as Uint8Array))
    if (Buffer.concat(pieces).toString() === owner) return true
    log.warn(
      'the store of files belongs to another installation, or SECRET_KEY has changed; no files of jobs are removed',
      {
        advice: `use another bucket or directory; if this is the only installation, delete ${OWNER} in the store`,
      },
    )
    return false
  }

  /** What handlers had copied when their process was killed. */
  async #sweepCopies(): Promise<void> {
    const { copiesDirectory } = this.#options
    if (copiesDirectory === undefined) return
    for (const name of await readdir(copiesDirectory).catch(() => [])) {
      if (!name.startsWith('turn-')) continue
      const path = join(copiesDirectory, name)
      const stats = await stat(path).catch(() => undefined)
      if (stats === undefined || Date.now() - stats.mtimeMs < COPIES_IDLE_MS) continue
      await rm(path, { recursive: true, force: true })
    }
  }
}

const FIRST_MS = 60_000
