import { closeSync, mkdirSync, openSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Log } from '@impresario/core'
import { FileClaimMarks } from './claim-marks.ts'
import type { ClaimMarks } from './claim-marks.ts'
import { lockDirectory } from './directory-lock.ts'
import { EmbeddedStorage } from './embedded-storage.ts'
import type { EmbeddedStorageOptions } from './embedded-storage.ts'
import { fileIdentity } from './file-identity.ts'
import { memoryBounds } from './memory-bounds.ts'
import { SqliteJournal } from './sqlite-journal.ts'

export interface OpenOptions extends Partial<Omit<EmbeddedStorageOptions, 'journal'>> {
  /** Created if it does not exist. One process at a time. */
  readonly directory: string
  readonly log?: Log
}

/** Storage in one SQLite file. */
export class FileStorage extends EmbeddedStorage {
  readonly #journal: SqliteJournal
  readonly #marks: ClaimMarks
  readonly #unlock: () => void
  #released: Promise<void> | undefined = undefined

  constructor(
    options: EmbeddedStorageOptions & { readonly marks: ClaimMarks },
    journal: SqliteJournal,
    unlock: () => void,
  ) {
    super({ ...options, journal })
    this.#journal = journal
    this.#marks = options.marks
    this.#unlock = unlock
  }

  /** Describes what is wrong with the file; `undefined` if it is sound. */
  integrityCheck(): readonly string[] {
    return this.#journal.integrityCheck()
  }

  override close(): Promise<void> {
    this.#released ??= super
      .close()
      .then(() => this.#marks.close())
      .finally(this.#unlock)
    return this.#released
  }
}

/** Opens the storage in this directory. Refuses if another process has it open or a newer program wrote it. */
export function openEmbeddedStorage(options: OpenOptions): FileStorage {
  const { directory, now = createClock(), log, ...rest } = options
  const path = resolve(directory)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const { file: lock, release: unlock } = lockDirectory(path)
  let journal: SqliteJournal | undefined
  try {
    const file = join(path, 'impresario.db')
    makePrivate(file)
    journal = new SqliteJournal(file, [fileIdentity(file), fileIdentity(lock)], { log })
    const marks = new FileClaimMarks(join(path, 'impresario.claims'))
    return new FileStorage({ ...memoryBounds(), ...rest, now, marks }, journal, unlock)
  } catch (error) {
    if (journal === undefined) unlock()
    else void journal.close().finally(unlock)
    throw error
  }
}

/** Jobs are private data, so only the owner gets access. A directory that already exists keeps its permissions. */
function makePrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
}

/** The wall clock at the start, advanced by the monotonic clock, which cannot be set. */
function createClock(): () => number {
  const start = Date.now() - performance.now()
  return () => Math.floor(start + performance.now())
}
