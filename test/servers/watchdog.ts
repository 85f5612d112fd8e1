import { spawn } from 'node:child_process'

/**
 * Ends a server when whoever started it is gone, and deletes what it has left. It reads the server's process id from a
 * pipe, and the pipe's end is the sign: that comes whatever ended the starter, its being killed and a thread's end too.
 */
export interface Watchdog {
  /** Zero: no server runs now. */
  watch(pid: number): void
  /** Ends what is watched, and deletes the directory. */
  dismiss(): void
}

const SCRIPT = `while read -r line; do pid=$line; done
if [ "\${pid:-0}" != 0 ]; then kill -s "$1" "$pid" && sleep 1; kill -s KILL "$pid"; fi
rm -rf "$2"`

export function startWatchdog(signal: 'QUIT' | 'KILL', directory: string): Watchdog {
  // In a session of its own: an interrupt from the keyboard must not end it before its work.
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
