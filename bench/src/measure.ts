import { readFileSync } from 'node:fs'

/** Milliseconds, comparable between the processes of one machine. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Keeps `width` calls under way until `count` have been made. */
export async function inFlight(count: number, width: number, call: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) {
      const index = next
      next += 1
      await call(index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane))
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((percent / 100) * sorted.length))] ?? Number.NaN
}

/** User and system time of other processes, in seconds, as the kernel counts it (hundredths). */
export function cpuSeconds(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids) {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks / 100
}

/** Proportional set size: shared pages are divided among those who share them. */
export function memoryMiB(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  return Math.round(Number(/^Pss:\s+(\d+)/mu.exec(text)?.[1] ?? 0) / 1024)
}

/** Share of all cores that processes other than ours used while `run` ran, in per cent. */
export async function foreignLoad<T>(pids: () => readonly number[], run: () => Promise<T>): Promise<[T, number]> {
  const before = machine(pids())
  const result = await run()
  const after = machine(pids())
  const foreign = after.busy - before.busy - (after.own - before.own)
  return [result, Math.max(0, Math.round((100 * foreign) / Math.max(0.01, after.total - before.total)))]
}

function machine(pids: readonly number[]): { busy: number; total: number; own: number } {
  const line = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? ''
  const fields = line.trim().split(/\s+/u).slice(1, 9).map(Number)
  const total = fields.reduce((sum, field) => sum + field, 0) / 100
  const idle = ((fields[3] ?? 0) + (fields[4] ?? 0)) / 100
  const self = process.cpuUsage()
  return { busy: total - idle, total, own: cpuSeconds(pids) + (self.user + self.system) / 1e6 }
}
