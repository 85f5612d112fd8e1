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
