import { spawn } from 'node:child_process'

/**
 * Stops a server when the process that started it is gone, and deletes its files. It reads the server's process id from
 * a pipe, and the end of the pipe is the signal: it comes however the starter ended, including by a kill or the end of
 * a thread.
 */
export interface Watchdog {
  /** Zero: no server runs now. */
  watch(pid: number): void
  /** Stops the watched server, and deletes the directory. */
  dismiss(): void
}

const SCRIPT = `while read -r line; do pid=$line; done
if [ "\${pid:-0}" != 0 ]; then kill -s "$1" "$pid" && sleep 1; kill -s KILL "$pid"; fi
rm -rf "$2"`

export function startWatchdog(signal: 'QUIT' | 'KILL', directory: string): Watchdog {
  // In a separate session: an interrupt from the keyboard must not end it before its work is done.
  const dog = spawn('sh', ['-c', SCRIPT, 'sh', signal, directory], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    cwd: '/',
  })
  dog.unref()
  dog.stdin.on('error', () => undefined)
  return {
    watch(pid) {
      dog.stdin.write(`${pid}\n`)
    },
    dismiss() {
      dog.stdin.end()
    },
  }
}
