import { readFileSync } from 'node:fs'

/** Milliseconds, comparable between the processes of one machine. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Keeps `width` calls in progress until `count` have been made. */
export async function inFlight(count: number, width: number, call: (index: number) => Promise<unknown>): Promise<void> {
  await inFlightFor({ count, width, ms: Number.POSITIVE_INFINITY }, call)
}

export interface Load {
  /** No call starts after this time. */
  readonly ms: number
  /** Maximum number of calls. */
  readonly count: number
  readonly width: number
}

/**
 * Keeps calls in progress until the time is over or enough have been made. Returns their number once all have ended.
 */
export async function inFlightFor(
  { ms, count, width }: Load,
  call: (index: number) => Promise<unknown>,
): Promise<number> {
  const endsAt = now() + ms
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count && now() < endsAt) {
      const index = next
      next += 1
      await call(index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane))
  return next
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((percent / 100) * sorted.length))] ?? Number.NaN
}

/** The mean of the two middle values if there is no single one. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
  return (upper + lower) / 2
}

/** User and system time of other processes and of their ended children, in seconds (the kernel counts hundredths). */
export function cpuSeconds(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids) {
    const text = readProcess(pid, 'stat')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    for (const field of fields.slice(11, 15)) ticks += Number(field)
  }
  return ticks / 100
}

/** Proportional set size: shared pages are divided among the processes that share them. */
export function memoryMiB(...pids: readonly number[]): number {
  const sizes = pids.map((pid) => Number(/^Pss:\s+(\d+)/mu.exec(readProcess(pid, 'smaps_rollup'))?.[1] ?? 0))
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / 1024)
}

/** Empty for a process that has ended: a database's processes come and go. */
function readProcess(pid: number, name: 'stat' | 'smaps_rollup'): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return ''
  }
}

/** Share of all cores that other processes used while `run` ran, in per cent. */
export async function foreignLoad<T>(pids: () => readonly number[], run: () => Promise<T>): Promise<[T, number]> {
  const before = machine(pids())
  const result = await run()
  const after = machine(pids())
  const foreign = after.busy - before.busy - (after.own - before.own)
  return [result, Math.max(0, Math.round((100 * foreign) / Math.max(0.01, after.total - before.total)))]
}

/** The share of the cores that other processes may use during a measurement. */
const QUIET_PERCENT = 12
const LISTEN_MS = 700

/** Total time to wait for a quiet machine, for all measures of a run: what one uses, the others do not have. */
export interface Patience {
  leftMs: number
}

/** Waits until other processes leave the machine idle, or until the waiting time is used up. */
export async function untilQuiet(pids: () => readonly number[], patience: Patience): Promise<void> {
  while (patience.leftMs > 0) {
    const [, foreign] = await foreignLoad(pids, () => sleep(LISTEN_MS))
    if (foreign <= QUIET_PERCENT) return
    patience.leftMs -= LISTEN_MS
  }
}

function machine(pids: readonly number[]): { busy: number; total: number; own: number } {
  const line = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? ''
  const fields = line.trim().split(/\s+/u).slice(1, 9).map(Number)
  const total = fields.reduce((sum, field) => sum + field, 0) / 100
  const idle = ((fields[3] ?? 0) + (fields[4] ?? 0)) / 100
  const self = process.cpuUsage()
  return { busy: total - idle, total, own: cpuSeconds(pids) + (self.user + self.system) / 1e6 }
}
