import { readdirSync, readFileSync } from 'node:fs'

export interface Figures {
  readonly processes: number
  /** Share of one processor, over the sampled time. */
  readonly cpuPercent: number
  /** The maximum of all of them together, in MiB; shared memory counts for each. */
  readonly rssMiBMax: number
}

interface Seen {
  readonly label: string
  readonly firstTicks: number
  lastTicks: number
}

/** Ticks of the kernel's clock in a second. */
const TICKS = 100
const EVERY_MS = 2_000

/** Samples this process and its descendants: their processor time and memory, by role. */
export class ProcessWatch {
  readonly #labels: readonly (readonly [RegExp, string])[]
  readonly #seen = new Map<number, Seen>()
  readonly #rss = new Map<string, number>()
  readonly #counts = new Map<string, number>()
  #began = performance.now()
  #timer: NodeJS.Timeout | undefined

  constructor(labels: readonly (readonly [RegExp, string])[]) {
    this.#labels = labels
  }

  start(): void {
    this.#began = performance.now()
    this.#look()
    this.#timer = setInterval(() => this.#look(), EVERY_MS)
  }

  stop(): Readonly<Record<string, Figures>> {
    clearInterval(this.#timer)
    this.#look()
    const seconds = (performance.now() - this.#began) / 1_000
    const ticks = new Map<string, number>()
    for (const { label, firstTicks, lastTicks } of this.#seen.values()) {
      ticks.set(label, (ticks.get(label) ?? 0) + lastTicks - firstTicks)
    }
    return Object.fromEntries(
      [...ticks].map(([label, spent]) => [
        label,
        {
          processes: this.#counts.get(label) ?? 0,
          cpuPercent: Math.round((spent / TICKS / seconds) * 100),
          rssMiBMax: Math.round((this.#rss.get(label) ?? 0) / 1_024),
        },
      ]),
    )
  }

  #look(): void {
    const rss = new Map<string, number>()
    const counts = new Map<string, number>()
    const isFirst = this.#seen.size === 0
    for (const { pid, ticks, kib, command } of family(process.pid)) {
      const label = this.#labels.find(([pattern]) => pattern.test(command))?.[1]
      if (label === undefined) continue
      const seen = this.#seen.get(pid)
      if (seen !== undefined) seen.lastTicks = ticks
      // A process that started later has spent all of its time since it began.
      else this.#seen.set(pid, { label, firstTicks: isFirst ? ticks : 0, lastTicks: ticks })
      rss.set(label, (rss.get(label) ?? 0) + kib)
      counts.set(label, (counts.get(label) ?? 0) + 1)
    }
    for (const [label, kib] of rss) this.#rss.set(label, Math.max(kib, this.#rss.get(label) ?? 0))
    for (const [label, number] of counts) this.#counts.set(label, Math.max(number, this.#counts.get(label) ?? 0))
  }
}

interface Process {
  readonly pid: number
  readonly parent: number
  readonly ticks: number
  readonly kib: number
  readonly command: string
}

/** A process and everything that descends from it. */
function family(root: number): readonly Process[] {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (read(Number(name)) ?? []) : []))
  const members = new Set([root])
  // Children have higher ids than their parents, except after the ids have wrapped around.
  for (const { pid, parent } of all.toSorted((one, other) => one.pid - other.pid)) {
    if (members.has(parent)) members.add(pid)
  }
  return all.filter(({ pid }) => members.has(pid))
}

function read(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    const kib = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
    return { pid, parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]), kib, command }
  } catch {
    // It has ended meanwhile.
    return undefined
  }
}
