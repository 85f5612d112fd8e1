import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The variable with the directory of one test run; `test/global-setup.ts` creates and deletes it. */
export const RUN_DIRECTORY = 'IMPRESARIO_TEST_RUN'

/** A memory file system if there is one: the files of a test server need not survive the machine. */
function fastDirectory(): string {
  return existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
}

/** A new directory, inside that of the run if there is one. */
export function newDirectory(name: string): string {
  return mkdtempSync(join(process.env[RUN_DIRECTORY] ?? fastDirectory(), `impresario-${name}-`))
}
