import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { ImpresarioError } from '@impresario/protocol'

/**
 * Keeps a second process out of a directory. The lock is one of the operating system, held through an
 * empty database of its own: it ends with the process however that ends, so a stale one cannot be.
 * The file with the process id is only there to name the holder.
 */
export function lockDirectory(directory: string): () => void {
  const pidFile = join(directory, 'impresario.pid')
  const db = new DatabaseSync(join(directory, 'impresario.lock'))
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
  return () => {
    rmSync(pidFile, { force: true })
    db.close()
  }
}

function holderOf(pidFile: string): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8'))
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}
