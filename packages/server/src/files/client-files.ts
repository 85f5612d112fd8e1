import { nextPage } from '@impresario/core'
import type { Job, KeptRoom, Log, Put, Storage, Stored } from '@impresario/core'
import { OneByOne } from '@impresario/engine'
import type { Booked, ComingFile, FileAccounts, JobFiles, NewPromise, PromisedFiles, Usage } from '@impresario/files'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import { errorFields } from '../runtime/log.ts'
import { putRoom, readRoom, roomsOf, withRoom } from './kept-room.ts'

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
/** A client that is at its limit may have room again when addresses end. It is looked for so often at most. */
const RELEASE_EVERY_MS = 1_000

/**
 * How many files the jobs of a client have together, and how many bytes. The account is a record in the storage, so that it
 * holds for all instances: an upload is booked before it begins and settled when it is over.
 *
 * An upload to an address of the store does not pass through here: it is booked when the address is issued, with a record of
 * the job that says for which file and until when (`promise`). It is settled when that time is over and a booking would be
 * refused otherwise, or with the next count. That record exists for clients without limits too, for the limits of the job.
 *
 * Files also come and go past the account: with jobs that are removed, and when a process ends in the middle of an upload. So
 * the files are counted regularly (`recount`), and that sets the account right. Clients without a limit have no account.
 */
export class ClientFiles implements FileAccounts {
  readonly #options: ClientFilesOptions
  /** Bookings of one client wait for each other here; those of other instances conflict, and the loser reads again. */
  readonly #queue = new OneByOne()
  /** What uploads to this instance have booked and not settled. */
  readonly #coming = new Map<string, Usage>()
  /** When this instance has looked last for addresses of a client that have ended, on the storage's clock. */
  readonly #releasedAt = new Map<string, number>()
  #counting: Promise<void> | undefined
  #firstCount: Promise<ReadonlyMap<string, Usage>> | undefined

  constructor(options: ClientFilesOptions) {
    this.#options = options
  }

  async book(jobId: string, file: ComingFile): Promise<Booked | undefined> {
    const clientId = (await this.#options.readJob(jobId))?.client.id
    if (clientId === undefined || !this.#isLimited(clientId)) return undefined
    return this.#queue.run(clientId, () => this.#book(clientId, file))
  }

  async removed(jobId: string, { files, bytes }: Usage): Promise<void> {
    const clientId = (await this.#options.readJob(jobId).catch(() => undefined))?.client.id
    if (clientId === undefined || !this.#isLimited(clientId)) return
    await this.#change(clientId, { files: -files, bytes: -bytes })
  }

  async promised(jobId: string): Promise<PromisedFiles> {
    const { storage } = this.#options
    const { version, kept } = await readRoom(storage, jobId)
    if (kept.length === 0) return { version, files: [] }
    const now = await storage.now()
    return { version, files: kept.filter(({ endsAt }) => endsAt > now) }
  }

  async promise(jobId: string, promise: NewPromise, file: ComingFile): Promise<'kept' | 'conflict' | 'full'> {
    const clientId = (await this.#options.readJob(jobId))?.client.id
    // It has just been removed, and its files go too.
    if (clientId === undefined) return 'full'
    return this.#queue.run(clientId, () => this.#promise(jobId, clientId, promise, file))
  }

  /** Counts the files of all clients with limits. Two that ask at once share one count. */
  recount(isOver: () => boolean = () => false): Promise<void> {
    if (!this.#options.hasLimits()) return Promise.resolve()
    this.#counting ??= this.#recount(isOver).finally(() => {
      this.#counting = undefined
    })
    return this.#counting
  }

  async #promise(
    jobId: string,
    clientId: string,
    { name, bytes, expiresMs, version }: NewPromise,
    file: ComingFile,
  ): Promise<'kept' | 'conflict' | 'full'> {
    const { storage } = this.#options
    // What has ended is settled first, as its files count in another way from now on.
    if (await this.#release(jobId, clientId)) return 'conflict'
    const known = await readRoom(storage, jobId)
    if (known.version !== version) return 'conflict'
    const endsAt = (await storage.now()) + expiresMs + LIMITS.fileAddressLingerMs
    const kept = withRoom(known.kept, { name, bytes, endsAt })
    if (kept.length > LIMITS.fileAddressesMax) return 'full'
    const put = [putRoom(known, clientId, kept)]
    const isWritten = this.#isLimited(clientId)
      ? (await this.#tryToBook(clientId, file, put)) !== undefined
      : (await storage.commit({ put })) === 'committed'
    // The address must not outlive what is known of it.
    if (isWritten) await storage.sync()
    return isWritten ? 'kept' : 'conflict'
  }

  async #book(clientId: string, file: ComingFile): Promise<Booked> {
    for (;;) {
      const booked = await this.#tryToBook(clientId, file)
      if (booked === undefined) continue
      const { by, bytesMax } = booked
      this.#comes(clientId, by, 1)
      return {
        bytesMax,
        settle: async (written) => {
          this.#comes(clientId, by, -1)
          const real = written === undefined ? NONE : { files: by.files, bytes: growth(file, written) }
          await this.#change(clientId, { files: real.files - by.files, bytes: real.bytes - by.bytes })
        },
      }
    }
  }

  /** Refuses what is too much. Nothing if the account, or what is written beside it, has changed in between. */
  async #tryToBook(
    clientId: string,
    file: ComingFile,
    beside: readonly Put[] = [],
  ): Promise<{ readonly by: Usage; readonly bytesMax: number } | undefined> {
    const { storage, limitsOf } = this.#options
    const { isNew, bytes, replaces } = file
    const account = await this.#account(clientId)
    const limits = limitsOf(clientId)
    const left = room(limits.bytesMax, account.use.bytes) + replaces
    const isTooMany = isNew && room(limits.filesMax, account.use.files) < 1
    if (isTooMany || left < (bytes ?? 1)) {
      if (await this.#releaseAll(clientId)) return undefined
      throw isTooMany ? tooMany(limits.filesMax, account.use.files) : tooMuch(limits.bytesMax, account.use.bytes, bytes)
    }
    const bytesMax = Math.min(file.bytesMax, left)
    const by = { files: isNew ? 1 : 0, bytes: growth(file, bytes ?? bytesMax) }
    const outcome = await storage.commit({ put: [putOf(account, by), ...beside] })
    return outcome === 'committed' ? { by, bytesMax } : undefined
  }

  /** Settles what addresses of this client have ended. False: there are none. */
  async #releaseAll(clientId: string): Promise<boolean> {
    const { storage } = this.#options
    const now = await storage.now()
    if (now - (this.#releasedAt.get(clientId) ?? Number.NEGATIVE_INFINITY) < RELEASE_EVERY_MS) return false
    this.#releasedAt.set(clientId, now)
    let isChanged = false
    for await (const { jobId, kept } of roomsOf(storage, clientId)) {
      if (kept.some(({ endsAt }) => endsAt <= now) && (await this.#release(jobId, clientId))) isChanged = true
    }
    return isChanged
  }

  /** Of what addresses of the job have ended, only files that are there count. False: none has ended. */
  async #release(jobId: string, clientId: string): Promise<boolean> {
    const { storage } = this.#options
    for (;;) {
      const known = await readRoom(storage, jobId)
      const now = known.kept.length === 0 ? 0 : await storage.now()
      const ended = known.kept.filter(({ endsAt }) => endsAt <= now)
      if (ended.length === 0) return false
      const left = known.kept.filter(({ endsAt }) => endsAt > now)
      const account = await this.#read(clientId)
      const put = [putRoom(known, clientId, left)]
      if (account.version > 0) put.push(putOf(account, await this.#unused(jobId, ended)))
      if ((await storage.commit({ put })) === 'committed') return true
    }
  }

  async #unused(jobId: string, ended: readonly KeptRoom[]): Promise<Usage> {
    const files = this.#options.files()
    let all = NONE
    for (const { name, bytes } of ended) {
      const there = await files.head(jobId, name)
      all = sum(all, { files: there === undefined ? -1 : 0, bytes: Math.min(0, (there?.bytes ?? 0) - bytes) })
    }
    return all
  }

  /** A client that has no account yet, because its limit is new, waits for the count. */
  async #account(clientId: string): Promise<Account> {
    for (;;) {
      const known = await this.#read(clientId)
      if (known.version > 0) return known
      const found = await this.#countOnce()
      // Only if it is still missing: another instance may have made it meanwhile, and booked what no count can find yet.
      await this.#options.storage.commit({ put: [putOf(known, found.get(clientId) ?? NONE)] })
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

  /** All that ask at once share one count. */
  #countOnce(): Promise<ReadonlyMap<string, Usage>> {
    this.#firstCount ??= this.#releaseEnded()
      .then((promised) => this.#count(promised, () => false))
      .then((found) => found ?? new Map<string, Usage>())
      .finally(() => {
        this.#firstCount = undefined
      })
    return this.#firstCount
  }

  async #recount(isOver: () => boolean): Promise<void> {
    const { storage } = this.#options
    const promised = await this.#releaseEnded()
    const before = new Map((await this.#accounts()).map((account) => [account.clientId, account.use]))
    const found = await this.#count(promised, isOver)
    if (found === undefined) return
    for (const clientId of new Set([...before.keys(), ...found.keys()])) {
      if (isOver()) return
      if (!this.#isLimited(clientId)) {
        await storage.commit({ drop: [{ kind: 'quota', id: `${PREFIX}${clientId}` }] })
        continue
      }
      await this.#correct(clientId, found.get(clientId) ?? NONE, before.get(clientId) ?? NONE)
    }
  }

  /** Settles what addresses have ended, and gives the jobs that have had some. */
  async #releaseEnded(): Promise<ReadonlySet<string>> {
    const promised = new Set<string>()
    for await (const { jobId } of roomsOf(this.#options.storage)) promised.add(jobId)
    for (const jobId of promised) {
      const clientId = (await this.#options.readJob(jobId))?.client.id
      if (clientId !== undefined) await this.#release(jobId, clientId)
    }
    return promised
  }

  /** What clients with limits have, with what comes to this instance. Nothing if it was ended before. */
  async #count(promised: ReadonlySet<string>, isOver: () => boolean): Promise<Map<string, Usage> | undefined> {
    const { readJob, files: filesOf } = this.#options
    const found = new Map(this.#coming)
    const files = filesOf()
    for await (const jobId of eachOnce(promised, files.jobs())) {
      if (isOver()) return undefined
      const clientId = (await readJob(jobId))?.client.id
      if (clientId === undefined || !this.#isLimited(clientId)) continue
      found.set(clientId, sum(found.get(clientId), await files.usage(jobId)))
    }
    return found
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

async function* eachOnce(first: ReadonlySet<string>, then: AsyncIterable<string>): AsyncGenerator<string> {
  yield* first
  for await (const one of then) if (!first.has(one)) yield one
}

/** By how much more counts under the name of a file when it has come. */
function growth({ promised, replaces }: ComingFile, bytes: number): number {
  return Math.max(bytes, promised) - replaces
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
