import { execFileSync, spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Programs that a test needs and that are not npm packages. As root on Debian, missing ones are installed; otherwise
 * the result says what is missing, as the reason of a skipped test.
 *
 * Returns `undefined` if all are present.
 */
export function ensure(packages: readonly string[]): string | undefined {
  const missing = packages.filter((name) => !isThere(name))
  if (missing.length === 0) return undefined
  if (process.getuid?.() === 0 && isThere('apt-get')) {
    try {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
      // One at a time: apt-get gives up at once if another instance is running.
      const lock = join(tmpdir(), 'impresario-debian-packages.lock')
      execFileSync('flock', [lock, 'sh', '-c', INSTALL, 'sh', ...missing], { env, stdio: 'ignore', timeout: 420_000 })
    } catch {
      // Without a network nothing can be installed; the result below says so.
    }
  }
  const left = missing.filter((name) => !isThere(name))
  return left.length === 0 ? undefined : `${left.join(', ')} cannot be found, nor installed with apt-get`
}

const INSTALL = 'apt-get update && apt-get install -y --no-install-recommends "$@"'

/** How to detect a package that has no program of its own name on the path. */
const SIGNS: Readonly<Record<string, string>> = {
  // Debian installs PostgreSQL's programs outside of the path.
  postgresql: 'command -v postgres || ls /usr/lib/postgresql/*/bin/postgres',
  'poppler-utils': 'command -v pdftotext',
  'tesseract-ocr': 'command -v tesseract',
  'tesseract-ocr-rus': 'tesseract --list-langs | grep -qx rus',
  // Their programs are named after what they serve.
  ...Object.fromEntries(
    ['proxy', 'account', 'container', 'object'].map((kind) => [`swift-${kind}`, `command -v swift-${kind}-server`]),
  ),
  // A module: of the Python on the path, or of Debian's own.
  'python3-dateutil': 'python3 -c "import dateutil.rrule" || /usr/bin/python3 -c "import dateutil.rrule"',
}

function isThere(name: string): boolean {
  const test = SIGNS[name] ?? 'command -v "$1"'
  return spawnSync('sh', ['-c', test, 'sh', name], { stdio: 'ignore' }).status === 0
}
