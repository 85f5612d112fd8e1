import { readFileSync } from 'node:fs'
import { lstat, stat } from 'node:fs/promises'
import type { Log } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { FileRecord } from '../index/indexer.ts'
import { nativePath, shownPath } from '../paths.ts'
import { DirectoryWatch } from './directory-watch.ts'
import { sendsEvents } from './event-probe.ts'
import { isIgnoredUnder } from './ignored.ts'
import type { FileEvent, FileMonitor, MonitorHealth } from './monitor.ts'
import { QuietFiles } from './quiet-files.ts'
import type { Verdict } from './quiet-files.ts'
import { walk } from './walk.ts'

export interface FolderMonitorOptions {
  readonly folders: readonly string[]
  readonly isIgnored: (path: string) => boolean
  readonly quietMs: number
  readonly rescanMs: number
  readonly pollMs: number
  /** What the index knows. A file that is as it was is not told of. */
  readonly known: (path: string) => Promise<FileRecord | undefined>
  /** Everything that the index knows under a folder, in pages by path. */
  readonly knownUnder: (folder: string, after: string) => Promise<readonly FileRecord[]>
  readonly isUpToDate: (record: FileRecord, facts: { readonly size: number; readonly mtimeMs: number }) => boolean
  /** A file keeps changing and is not taken yet. */
  readonly held?: (path: string) => void
  readonly log: Log
}

/**
 * Watches folders: events where the system sends them, and everything compared with the index at the start, from time to time,
 * and more often where there are no events. Nothing depends on an event: one that is lost is found by the next comparison.
 *
 * new → start → watching → stop → stopped.
 */
export class FolderMonitor implements FileMonitor {
  readonly #options: FolderMonitorOptions
  readonly #watch: DirectoryWatch
  readonly #quiet: QuietFiles
  readonly #problems = new Map<string, string>()
  readonly #polled = new Set<string>()
  #notice: (event: FileEvent) => Promise<void> = () => Promise.resolve()
  #timers: NodeJS.Timeout[] = []
  #scanning: Promise<void> | undefined
  #isStopped = false
  readonly #burstMax = burstMax()
  #heardCount = 0
  #hasLost = false

  constructor(options: FolderMonitorOptions) {
    this.#options = options
    this.#watch = new DirectoryWatch(
      (path) => this.#heard(path),
      (directory, code) => this.#lost(directory, code),
    )
    this.#quiet = new QuietFiles(
      options.quietMs,
      (path, verdict) => {
        void this.#settled(path, verdict)
      },
      () => {
        void this.rescan()
      },
      (path) => {
        if (!this.#isStopped) options.held?.(path)
      },
    )
  }

  async start(notice: (event: FileEvent) => Promise<void>): Promise<void> {
    this.#notice = notice
    const { folders, rescanMs, pollMs, log } = this.#options
    for (const folder of folders) {
      await mustBeFolder(folder)
      if (await sendsEvents(folder)) continue
      this.#polled.add(folder)
      log.info('this folder sends no events and is compared instead', { folder: shownPath(folder), everyMs: pollMs })
    }
    this.#timers.push(
      setInterval(() => {
        void this.rescan()
      }, rescanMs).unref(),
    )
    this.#timers.push(
      setInterval(() => {
        void this.#poll()
      }, pollMs).unref(),
    )
    this.#timers.push(setInterval(() => this.#checkBurst(), BURST_MS).unref())
    // The first comparison goes on while files are read: a full queue holds it up.
    void this.rescan()
  }

  /** One comparison of everything, without watching. */
  async compareOnce(notice: (event: FileEvent) => Promise<void>): Promise<void> {
    this.#notice = notice
    for (const folder of this.#options.folders) {
      await mustBeFolder(folder)
      // A program that adds files once takes them as they are.
      for await (const { path, isDirectory } of walk(folder, this.#options.isIgnored)) {
        if (!isDirectory) await this.#compare(path, 0)
      }
      await this.#findGone(folder)
    }
    await this.stop()
  }

  /** One at a time; who asks meanwhile gets the next. */
  async rescan(): Promise<void> {
    await this.#scanning
    this.#scanning ??= this.#scan(this.#options.folders).finally(() => {
      this.#scanning = undefined
    })
    await this.#scanning
  }

  health(): MonitorHealth {
    return { isHealthy: this.#problems.size === 0, problems: [...this.#problems.values()] }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const timer of this.#timers) clearInterval(timer)
    this.#timers = []
    this.#watch.close()
    this.#quiet.close()
    await this.#scanning?.catch(() => undefined)
  }

  async #poll(): Promise<void> {
    await this.#checkFolders()
    if (this.#polled.size === 0 || this.#scanning !== undefined || this.#isStopped) return
    this.#scanning = this.#scan([...this.#polled]).finally(() => {
      this.#scanning = undefined
    })
    await this.#scanning
  }

  async #scan(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      try {
        await mustBeFolder(folder)
        this.#problems.delete(folder)
      } catch {
        // Not mounted, perhaps. Its documents stay.
        this.#problems.set(folder, `${shownPath(folder)} cannot be read`)
        this.#options.log.warn('a watched folder cannot be read; its documents stay as they are', {
          folder: shownPath(folder),
        })
        continue
      }
      await this.#findPresent(folder)
      await this.#findGone(folder)
    }
  }

  async #findPresent(folder: string): Promise<void> {
    const { isIgnored, log } = this.#options
    const onUnreadable = (path: string, error: unknown): void =>
      log.warn('a folder cannot be read', { folder: shownPath(path), reason: String(error) })
    for await (const { path, isDirectory } of walk(folder, isIgnored, onUnreadable)) {
      if (this.#isStopped) return
      if (!isDirectory) await this.#compare(path)
      else if (!this.#isPolled(path)) await this.#watchOver(path)
    }
  }

  async #watchOver(directory: string): Promise<void> {
    const identity = await identityOf(directory)
    if (identity !== undefined && !this.#isStopped) this.#watch.add(directory, identity)
  }

  /** A watched folder has no events when another one is put into its place, and neither has what is in the new one. */
  async #checkFolders(): Promise<void> {
    for (const folder of this.#options.folders) {
      const identity = this.#isPolled(folder) ? undefined : await identityOf(folder)
      if (identity === undefined || this.#isStopped) continue
      if (this.#watch.has(folder) && !this.#watch.isOn(folder, identity)) await this.rescan()
    }
  }

  /**
   * The system keeps so many events for a process that is busy, and drops those that come then, without a word. After a burst
   * that large everything is compared once.
   */
  #checkBurst(): void {
    const heard = this.#heardCount
    this.#heardCount = 0
    if (heard > this.#burstMax) this.#hasLost = true
    else if (this.#hasLost) {
      this.#hasLost = false
      this.#options.log.debug('many events came at once, and some may be lost: everything is compared')
      void this.rescan()
    }
  }

  async #compare(path: string, quietMs = this.#options.quietMs): Promise<void> {
    const { known, isUpToDate } = this.#options
    const record = await known(path)
    const facts = await lstat(nativePath(path)).catch(() => undefined)
    if (facts === undefined || !facts.isFile() || (record !== undefined && isUpToDate(record, facts))) return
    // One that is just being written waits until it is quiet.
    if (Date.now() - facts.mtimeMs < quietMs) this.#quiet.heard(path)
    else await this.#notice({ path, change: 'present', isFound: true })
  }

  async #findGone(folder: string): Promise<void> {
    const { knownUnder, isIgnored } = this.#options
    let after = ''
    for (;;) {
      const page = await knownUnder(folder, after)
      for (const { path } of page) {
        if (this.#isStopped) return
        const isThere = !isIgnoredUnder(folder, path, isIgnored) && (await isFile(path))
        if (!isThere) await this.#notice({ path, change: 'gone', isFound: true })
      }
      const last = page.at(-1)
      if (last === undefined) return
      after = last.path
    }
  }

  #heard(path: string): void {
    this.#heardCount += 1
    if (this.#isStopped || this.#isIgnored(path)) return
    this.#quiet.heard(path)
  }

  async #settled(path: string, verdict: Verdict): Promise<void> {
    if (this.#isStopped) return
    const wasDirectory = this.#watch.has(path)
    // New, or renamed: what is in it already has no events of its own, and neither has what was in the one before.
    if (wasDirectory) this.#watch.remove(path)
    if (verdict === 'directory') await this.#findPresent(path)
    else await this.#notice({ path, change: verdict === 'file' ? 'present' : 'gone', isFound: false })
    if (verdict !== 'file' || wasDirectory) await this.#findGone(path)
  }

  #isIgnored(path: string): boolean {
    const folder = this.#options.folders.find((one) => path === one || path.startsWith(one === '/' ? '/' : `${one}/`))
    return folder !== undefined && path !== folder && isIgnoredUnder(folder, path, this.#options.isIgnored)
  }

  #isPolled(path: string): boolean {
    return [...this.#polled].some((folder) => path === folder || path.startsWith(`${folder}/`))
  }

  /** No watches are left, or the directory is gone: its folder is compared instead. */
  #lost(directory: string, code: string): void {
    const { folders, log } = this.#options
    if (code !== 'ENOSPC' && code !== 'EMFILE') return
    const folder = folders.find((one) => directory === one || directory.startsWith(`${one}/`))
    if (folder === undefined || this.#polled.has(folder)) return
    this.#polled.add(folder)
    log.warn('the system has no more watches; this folder is compared instead', {
      folder: shownPath(folder),
      advice: 'raise fs.inotify.max_user_watches, such as: sysctl fs.inotify.max_user_watches=524288',
    })
  }
}

/** How often events are counted. */
const BURST_MS = 1_000
/** Of the events that the system keeps. A burst may be counted in two parts, and a third of it elsewhere. */
const BURST_SHARE = 1 / 4
const QUEUED_EVENTS = 16_384

function burstMax(): number {
  let queued = QUEUED_EVENTS
  try {
    queued = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'latin1')) || QUEUED_EVENTS
  } catch {
    // Another system, with bounds of its own.
  }
  return queued * BURST_SHARE
}

async function identityOf(directory: string): Promise<string | undefined> {
  return stat(nativePath(directory), { bigint: true }).then(
    ({ dev, ino, birthtimeNs }) => `${dev} ${ino} ${birthtimeNs}`,
    () => undefined,
  )
}

async function isFile(path: string): Promise<boolean> {
  return lstat(nativePath(path)).then(
    (facts) => facts.isFile(),
    (error: unknown) =>
      !(error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')),
  )
}

async function mustBeFolder(folder: string): Promise<void> {
  const facts = await stat(nativePath(folder)).catch((cause: unknown) => {
    throw new ImpresarioError('INPUT_REFUSED', `The folder ${shownPath(folder)} cannot be read.`, { cause })
  })
  if (!facts.isDirectory()) throw new ImpresarioError('INPUT_REFUSED', `${shownPath(folder)} is no folder.`)
}
