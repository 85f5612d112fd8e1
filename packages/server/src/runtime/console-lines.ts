import { Console } from 'node:console'
import { Writable } from 'node:stream'
import type { Log } from '@impresario/core'

/**
 * What code of users and of libraries writes with `console` becomes lines of the log: who reads the output as JSON, line by
 * line, meets nothing else. Returns what undoes it.
 */
export function consoleIntoLog(log: Log): () => void {
  const before = { ...console }
  const lines = new Console({ stdout: writer(log, 'info'), stderr: writer(log, 'warn'), colorMode: false })
  Object.assign(console, lines)
  return () => {
    Object.assign(console, before)
  }
}

/** Each call of `console` is one write, however many lines it has. */
function writer(log: Log, level: 'info' | 'warn'): Writable {
  return new Writable({
    decodeStrings: false,
    write: (text: string | Buffer, _encoding, done) => {
      log[level](String(text).replace(/\n$/, ''), { source: 'console' })
      done()
    },
  })
}
