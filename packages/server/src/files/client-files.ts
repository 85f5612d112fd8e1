import { nextPage } from '@impresario/core'
import type { Job, Log, Put, Storage, Stored } from '@impresario/core'
import { OneByOne } from '@impresario/engine'
import type { Booked, ComingFile, FileAccounts, JobFiles, Usage } from '@impresario/files'
import { ImpresarioError } from '@impresario/protocol'
import { errorFields } from '../runtime/log.ts'

/** Zero: no limit. */
export interface ClientFileLimits {
  readonly filesMax: number
  readonly bytesMax: number
}

export interface ClientFilesOptions {
  readonly storage: Storage
  readonly log: Log
  readonly readJob: (jobId: string) => Promise<Job | undefined>
  readonly limitsOf: (clientId: string) => ClientFileLimits
  /** Whether any client has a limit: without one nothing is counted. */
  readonly hasLimits: () => boolean
  /** Refuses where there is no store. */
  readonly files: () => JobFiles
}

interface Account {
  readonly clientId: string
  readonly version: number
  readonly use: Usage
}

/** Marks the records of accounts among those of other quotas, in their ids and for lists. */
const PREFIX = '%files/'
const STATUS = 'files'
const PAGE = 200
/** An account that nothing has changed for so long is counted anew when it is needed. */
const KEPT_MS = 30 * 86_400_000

/**
 * How many files the jobs of a client have together, and how many bytes. The account is a record in the storage, so that it
 * holds for all instances: an upload is booked before it begins and settled when it is over.
 *
 * Files also come and go past the account: by addresses of the store itself, with jobs that are removed, and when a process ends in the
 * middle of an upload. So the files are counted regularly (`recount`), and that sets the account right. Clients without a limit
 * have no account.
 */
export class ClientFiles implements FileAccounts {
  readonly #options: ClientFilesOptions
  /** Bookings of one client wait for each other here; those of other instances conflict, and the loser reads again. */
  readonly #queue = new OneByOne()
  /** What uploads to this instance have booked and not settled. */
  readonly #coming = new Map<string, Usage>()
  #counting: Promise<void> | undefined

  constructor(options: ClientFilesOptions) {
    this.#options = options
  }

  async book(jobId: string, file: ComingFile): Promise<Booked | undefined> {
    const clientId = (await this.#options.readJob(jobId))?.client.id
    if (clientId === undefined || !this.#isLimited(clientId)) return undefined
    return this.#queue.run(clientId, () => this.#book(clientId, file))
  }

  async removed(jobId: string, bytes: number): Promise<void> {
    const clientId = (await this.#options.readJob(jobId).catch(() => undefined))?.client.id
    if (clientId === undefined || !this.#isLimited(clientId)) return
    await this.#change(clientId, { files: -1, bytes: -bytes })
  }

  /** Counts the files of all clients with limits. Two that ask at once share one count. */
  recount(isOver: () => boolean = () => false): Promise<void> {
    if (!this.#options.hasLimits()) return Promise.resolve()
    this.#counting ??= this.#recount(isOver).finally(() => {
      this.#counting = undefined
    })
    return this.#counting
  }

  async #book(clientId: string, { isNew, bytes, bytesMax, replaces }: ComingFile): Promise<Booked> {
    const { storage, limitsOf } = this.#options
    for (;;) {
      const account = await this.#account(clientId)
      const limits = limitsOf(clientId)
      const left = room(limits.bytesMax, account.use.bytes) + replaces
      if (isNew && room(limits.filesMax, account.use.files) < 1) throw tooMany(limits.filesMax, account.use.files)
      if (left < (bytes ?? 1)) throw tooMuch(limits.bytesMax, account.use.bytes, bytes)
      const most = Math.min(bytesMax, left)
      const booked = { files: isNew ? 1 : 0, bytes: (bytes ?? most) - replaces }
      if ((await storage.commit({ put: [putOf(account, booked)] })) !== 'committed') continue
      this.#comes(clientId, booked, 1)
      return {
        bytesMax: most,
        settle: async (written) => {
          this.#comes(clientId, booked, -1)
          const real = written === undefined ? NONE : { files: booked.files, bytes: written - replaces }
          await this.#change(clientId, { files: real.files - booked.files, bytes: real.bytes - booked.bytes })
        },
      }
    }
  }

  /** A client that has no account yet, because its limit is new, waits for the count. */
  async #account(clientId: string): Promise<Account> {
    for (;;) {
      const known = await this.#read(clientId)
      if (known.version > 0) return known
      await this.recount()
      const counted = await this.#read(clientId)
      if (counted.version > 0) return counted
      // It has no files, so that the count has found nothing.
      await this.#options.storage.commit({ put: [putOf(counted, NONE)] })
    }
  }

  async #read(clientId: string): Promise<Account> {
    return accountOf(clientId, await this.#options.storage.read('quota', `${PREFIX}${clientId}`))
  }

  /** What fails here is set right by the next count, so nobody has to fail with it. */
  async #change(clientId: string, by: Usage): Promise<void> {
    if (by.files === 0 && by.bytes === 0) return
    const { storage, log } = this.#options
    try {
      await this.#queue.run(clientId, async () => {
        for (;;) {
          const account = await this.#read(clientId)
          if (account.version === 0) return
          if ((await storage.commit({ put: [putOf(account, by)] })) === 'committed') return
        }
      })
    } catch (error) {
      log.warn('the account of the files of a client was not changed; the next count does', errorFields(error))
    }
  }

  async #recount(isOver: () => boolean): Promise<void> {
    const { readJob, files: filesOf } = this.#options
    const before = new Map((await this.#accounts()).map((account) => [account.clientId, account.use]))
    const coming = new Map(this.#coming)
    const found = new Map<string, Usage>()
    const files = filesOf()
    for await (const jobId of files.jobs()) {
      if (isOver()) return
      const clientId = (await readJob(jobId))?.client.id
      if (clientId === undefined || !this.#isLimited(clientId)) continue
      found.set(clientId, sum(found.get(clientId), await files.usage(jobId)))
    }
    for (const clientId of new Set([...before.keys(), ...found.keys()])) {
      if (isOver()) return
      if (!this.#isLimited(clientId)) {
        await this.#options.storage.commit({ drop: [{ kind: 'quota', id: `${PREFIX}${clientId}` }] })
        continue
      }
      await this.#correct(clientId, sum(found.get(clientId), coming.get(clientId)), before.get(clientId) ?? NONE)
    }
  }

  /** What was booked while the files were counted may not be among them: it is added, and settled or counted later. */
  async #correct(clientId: string, found: Usage, before: Usage): Promise<void> {
    for (;;) {
      const account = await this.#read(clientId)
      const { use } = account
      const grown = { files: Math.max(0, use.files - before.files), bytes: Math.max(0, use.bytes - before.bytes) }
      const right = sum(found, account.version === 0 ? NONE : grown)
      const by = { files: right.files - use.files, bytes: right.bytes - use.bytes }
      if (account.version > 0 && by.files === 0 && by.bytes === 0) return
      if ((await this.#options.storage.commit({ put: [putOf(account, by)] })) === 'committed') return
    }
  }

  async #accounts(): Promise<readonly Account[]> {
    const all: Account[] = []
    let before: string | undefined
    for (;;) {
      const from = before === undefined ? {} : { before }
      const page = await this.#options.storage.list('quota', { status: STATUS, limit: PAGE, ...from })
      all.push(...page.map((stored) => accountOf(stored.id.slice(PREFIX.length), stored)))
      before = nextPage(page, PAGE)
      if (before === undefined) return all
    }
  }

  #isLimited(clientId: string): boolean {
    const { filesMax, bytesMax } = this.#options.limitsOf(clientId)
    return filesMax > 0 || bytesMax > 0
  }

  #comes(clientId: string, { files, bytes }: Usage, times: 1 | -1): void {
    const all = sum(this.#coming.get(clientId), { files: files * times, bytes: bytes * times })
    if (all.files === 0 && all.bytes === 0) this.#coming.delete(clientId)
    else this.#coming.set(clientId, all)
  }
}

const NONE: Usage = { files: 0, bytes: 0 }

function sum(one: Usage = NONE, other: Usage = NONE): Usage {
  return { files: one.files + other.files, bytes: one.bytes + other.bytes }
}

function room(limit: number, used: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit - used
}

function accountOf(
  clientId: string,
  stored: Stored<{ readonly used: number; readonly bytes?: number }> | undefined,
): Account {
  const { used = 0, bytes = 0 } = stored?.value ?? {}
  return { clientId, version: stored?.version ?? 0, use: { files: used, bytes } }
}

function putOf({ clientId, version, use }: Account, by: Usage): Put {
  const { files, bytes } = sum(use, by)
  return {
    kind: 'quota',
    id: `${PREFIX}${clientId}`,
    version: version + 1,
    value: { period: STATUS, used: Math.max(0, files), bytes: Math.max(0, bytes) },
    facets: { status: STATUS },
    expiresMs: KEPT_MS,
  }
}

const RAISE = 'Delete files that are not needed, or ask an operator to raise'

function tooMany(limit: number, used: number): ImpresarioError {
  const message = `The jobs of this client may have ${limit} files together, and have ${used}. ${RAISE} CLIENT_FILES_MAX, or files_max in clients.toml.`
  return new ImpresarioError('LIMIT_EXCEEDED', message)
}

function tooMuch(limit: number, used: number, asked: number | undefined): ImpresarioError {
  const more = asked === undefined ? 'This file needs more.' : `This file has ${asked}.`
  const message = `The files of all jobs of this client may have ${limit} bytes together, of which ${used} are used. ${more} ${RAISE} CLIENT_FILES_BYTES_MAX, or files_bytes_max in clients.toml.`
  return new ImpresarioError('LIMIT_EXCEEDED', message)
}
