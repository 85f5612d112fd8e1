import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { invalid } from './config.ts'

/**
 * Makes sure that there is a directory to write to, with those above it, and refuses in one sentence where there cannot be.
 * One after the other: `mkdir` with `recursive` never returns where the system refuses a name with ENOENT, as /proc does.
 */
export function makeDirectory(setting: string, path: string): void {
  try {
    make(resolve(path))
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw invalid(`${setting}: the directory ${path} cannot be used: ${reason}.`, error)
  }
}

function make(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory() === true) return
  if (found !== undefined) throw new Error('there is a file of that name')
  const above = dirname(path)
  if (above !== path) make(above)
  mkdirSync(path, { mode: 0o700 })
}
