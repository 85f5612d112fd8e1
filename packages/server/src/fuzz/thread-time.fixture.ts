import { readFileSync } from 'node:fs'

/** The kernel counts in hundredths of a second, whatever the clock of the machine does. */
const TICK_MS = 10

/**
 * The time of the processor that this thread has used, in milliseconds. Unlike a clock on the wall it does not go on while the
 * machine is busy with others. `undefined` where the system does not tell.
 */
export function threadMs(): number | undefined {
  let stat: string
  try {
    stat = readFileSync('/proc/thread-self/stat', 'utf8')
  } catch {
    return undefined
  }
  // The second field is a name in brackets, which may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
