import { execFileSync, spawnSync } from 'node:child_process'

/**
 * Programs that a test needs and that are no package of npm. As root on Debian they are installed when they are missing;
 * otherwise the answer says what is missing, for the reason of a skipped test.
 *
 * Returns nothing when all are there.
 */
export function ensure(packages: readonly string[]): string | undefined {
  const missing = packages.filter((name) => !isThere(name))
  if (missing.length === 0) return undefined
  if (process.getuid?.() === 0 && isThere('apt-get')) {
    try {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
      execFileSync('apt-get', ['update'], { env, stdio: 'ignore', timeout: 120_000 })
      execFileSync('apt-get', ['install', '-y', '--no-install-recommends', ...missing], {
        env,
        stdio: 'ignore',
        timeout: 300_000,
      })
    } catch {
      // Without a network there is nothing to install from; the answer below says so.
    }
  }
  const left = missing.filter((name) => !isThere(name))
  return left.length === 0 ? undefined : `${left.join(', ')} cannot be found, nor installed with apt-get`
}

/** The packages that are asked for here have a program of their own name; Debian keeps PostgreSQL's out of the way. */
function isThere(name: string): boolean {
  const test =
    name === 'postgresql' ? 'command -v postgres || ls /usr/lib/postgresql/*/bin/postgres' : `command -v "$1"`
  return spawnSync('sh', ['-c', test, 'sh', name], { stdio: 'ignore' }).status === 0
}
