import { readFileSync } from 'node:fs'

/** The kernel counts in hundredths of a second, whatever the clock of the machine does. */
const TICK_MS = 10

interface WithThreadUsage {
  threadCpuUsage?(): { readonly user: number; readonly system: number }
}

/**
 * The time of the processor that this thread has used, in milliseconds. Unlike a clock on the wall it does not go on while the
 * machine is busy with others. `undefined` where the system does not tell.
 */
export function threadMs(): number | undefined {
  // Boundary: Node has it since 22.19.
  const usage = (process as WithThreadUsage).threadCpuUsage?.()
  if (usage !== undefined) return (usage.user + usage.system) / 1_000
  let stat: string
  try {
    const ns = Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0])
    if (ns > 0) return ns / 1e6
    stat = readFileSync('/proc/thread-self/stat', 'utf8')
  } catch {
    return undefined
  }
  // The second field is a name in brackets, which may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
