import { everyPair, everySingle, subjects } from './exhaust.ts'
import type { ExhaustReport } from './exhaust.ts'

/** The number of failures per blueprint that are useful to print. */
const FAILURES_MAX = 5

/** Runs what the command line requests. True when nothing failed. */
export async function runExhaustive(
  options: { readonly pairs: boolean; readonly only: string | undefined },
  say: (line: string) => void,
): Promise<boolean> {
  let runs = 0
  let failures = 0
  const tell = (kind: string, report: ExhaustReport, begun: number): void => {
    const seconds = ((performance.now() - begun) / 1000).toFixed(1)
    runs += report.runs
    failures += report.failures.length
    say(
      `${report.name}: ${report.calls} calls, ${report.runs} ${kind}, ${report.failures.length} failures, ${seconds} s`,
    )
    for (const failure of report.failures.slice(0, FAILURES_MAX)) say(`  ${failure}`)
  }
  for (const subject of subjects()) {
    if (options.only !== undefined && subject.name !== options.only) continue
    const begun = performance.now()
    tell('single faults', await everySingle(subject), begun)
    if (!options.pairs) continue
    const begunPairs = performance.now()
    tell('pairs', await everyPair(subject), begunPairs)
  }
  say(`runs: ${runs}, failures: ${failures}`)
  return failures === 0
}
