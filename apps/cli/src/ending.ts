/**
 * Ends the process when everything that was said is out. Nothing else may keep it: a blueprint that left a timer behind would
 * hold a server that was told to stop, or that refused to start, for ever.
 */
export async function endProcess(code: number): Promise<void> {
  process.exitCode = code
  await Promise.all([process.stdout, process.stderr].map(flushed))
  process.exit(code)
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (!stream.writable) {
      resolve()
      return
    }
    // A reader that has gone is no reason to stay.
    stream.once('error', () => resolve())
    stream.write('', () => resolve())
  })
}

/** A server is not ended by a reader of its log that has gone. */
const SERVERS: ReadonlySet<string | undefined> = new Set(['start', 'dev'])

/** Ends a command whose reader has gone, such as `head`: all that it was to read was said, and what was asked for is done. */
export function endWithReader(command: string | undefined): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      if (!SERVERS.has(command)) process.exit(process.exitCode ?? 0)
    })
  }
}
