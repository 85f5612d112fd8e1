import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { ImpresarioError } from '@impresario/protocol'

export interface DirectoryLock {
  /** As long as this file exists, no other process can open the directory. */
  readonly file: string
  readonly release: () => void
}

/**
 * Keeps a second process out of a directory. It is a lock of the operating system, held through a separate empty
 * database. It ends with the process, however the process ends, so it cannot become stale. The file with the process id
 * only serves to name the holder.
 */
export function lockDirectory(directory: string): DirectoryLock {
  const pidFile = join(directory, 'impresario.pid')
  const file = join(directory, 'impresario.lock')
  const db = new DatabaseSync(file)
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (cause) {
    db.close()
    const pid = holderOf(pidFile)
    throw new ImpresarioError(
      'STORAGE_UNAVAILABLE',
      `The directory ${directory} is in use by ${pid === undefined ? 'another process' : `process ${pid}`}. ` +
        'Only one process can have it open: stop that one, or choose another directory.',
      { cause, details: { directory, ...(pid === undefined ? {} : { pid }) } },
    )
  }
  writeFileSync(pidFile, `${process.pid}\n`)
  const release = (): void => {
    rmSync(pidFile, { force: true })
    db.close()
  }
  return { file, release }
}

function holderOf(pidFile: string): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8'))
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}
