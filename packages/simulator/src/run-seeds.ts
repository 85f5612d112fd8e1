import type { BugName } from './bugs/index.ts'
import { simulate } from './simulate.ts'
import type { WorldReport } from './simulate.ts'
import { catchStrays } from './strays.ts'
import { Tally } from './tally.ts'

interface Failure {
  readonly seed: number
  readonly setup: string
  readonly problems: readonly string[]
}

/** The results of many seeds. Plain data, because it is sent between threads. */
export interface RunReport {
  readonly seeds: number
  readonly steps: number
  readonly simulatedMs: number
  readonly failures: readonly Failure[]
  readonly counts: Readonly<Record<string, number>>
}

export interface RunOptions {
  readonly seeds: readonly number[]
  readonly bug?: BugName | undefined
  /** Ends the run at the first failure: enough to know that a bug is found. */
  readonly stopsAtFirst?: boolean
  readonly onSeed?: (report: WorldReport) => void
}

/** The number of problems per world that are useful to print. */
const PROBLEMS_MAX = 5

export async function runSeeds(options: RunOptions): Promise<RunReport> {
  const tally = new Tally()
  const failures: Failure[] = []
  let steps = 0
  let simulatedMs = 0
  let seeds = 0
  for (const seed of options.seeds) {
    const report = await catchStrays(seed, () => simulate(seed, { bug: options.bug }))
    seeds += 1
    steps += report.steps
    simulatedMs += report.simulatedMs
    tally.addAll(report.counts)
    tally.add(`worlds: ${report.setup}`, 1)
    options.onSeed?.(report)
    if (report.findings.length === 0) continue
    const problems = report.findings.slice(0, PROBLEMS_MAX).map(({ rule, problem }) => `${rule}: ${problem}`)
    failures.push({ seed, setup: report.setup, problems })
    if (options.stopsAtFirst === true) break
  }
  return { seeds, steps, simulatedMs, failures, counts: tally.toRecord() }
}

export function mergeReports(reports: readonly RunReport[]): RunReport {
  const tally = new Tally()
  for (const { counts } of reports) tally.addAll(counts)
  return {
    seeds: sum(reports, ({ seeds }) => seeds),
    steps: sum(reports, ({ steps }) => steps),
    simulatedMs: sum(reports, (report) => report.simulatedMs),
    failures: reports.flatMap(({ failures }) => failures).toSorted((a, b) => a.seed - b.seed),
    counts: tally.toRecord(),
  }
}

function sum(reports: readonly RunReport[], of: (report: RunReport) => number): number {
  return reports.reduce((total, report) => total + of(report), 0)
}
