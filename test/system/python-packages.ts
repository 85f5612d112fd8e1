import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Packages of Python in a directory of their own, for `PYTHONPATH`. Nothing where pip cannot get them. */
export function installPython(packages: readonly string[]): string | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'impresario-python-'))
  const options = [
    '--quiet',
    '--no-input',
    '--no-compile',
    '--disable-pip-version-check',
    '--timeout',
    '10',
    '--retries',
    '0',
  ]
  const install = ['-m', 'pip', 'install', ...options, '--target', directory, ...packages]
  if (spawnSync('python3', install, { stdio: 'ignore', timeout: 60_000 }).status === 0) return directory
  rmSync(directory, { recursive: true, force: true })
  return undefined
}
