import { chmodSync, rmSync } from 'node:fs'
import { newDirectory, RUN_DIRECTORY } from './servers/run-directory.ts'
import { startWatchdog } from './servers/watchdog.ts'
import { ensure } from './system/debian-packages.ts'

/** Once, before the first test and outside of all test timeouts: installing takes a minute on a fresh machine. */
export function setup(): (() => void) | undefined {
  // Every project runs the setup; the first does it for all, and cleans up when all are done.
  if (process.env[RUN_DIRECTORY] !== undefined) return undefined
  ensure(['redis-server', 'postgresql', 'pgbouncer', 'python3', 'python3-dateutil', 'openssl', 'nginx', 'chromium'])
  ensure(['poppler-utils', 'docx2txt', 'odt2txt', 'unrtf', 'catdoc'])
  ensure(['swift-proxy', 'swift-account', 'swift-container', 'swift-object', 'prometheus'])
  const directory = newDirectory('tests')
  // PostgreSQL runs as a separate user and needs access to its data.
  chmodSync(directory, 0o711)
  const watchdog = startWatchdog('KILL', directory)
  process.env[RUN_DIRECTORY] = directory
  return () => {
    rmSync(directory, { recursive: true, force: true })
    watchdog.dismiss()
  }
}
