import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Names the directory that belongs to one run of the tests; `test/global-setup.ts` makes and deletes it. */
export const RUN_DIRECTORY = 'IMPRESARIO_TEST_RUN'

/** Memory where there is some to write files into: what a test server writes need not survive the machine. */
function fastDirectory(): string {
  return existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
}

/** A new directory, inside that of the run when there is one. */
export function newDirectory(name: string): string {
  return mkdtempSync(join(process.env[RUN_DIRECTORY] ?? fastDirectory(), `impresario-${name}-`))
}
