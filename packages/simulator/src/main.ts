import { HELP, readCommand } from './command-line.ts'
import type { Command } from './command-line.ts'
import { floor } from './checkers/floor.ts'
import { runExhaustive } from './exhaustive/report.ts'
import { simulate } from './simulate.ts'
import { catchStrays } from './strays.ts'
import { spreadSeeds } from './threads.ts'

/** From this many seeds on, every fault and every rare event has to have been seen. */
const FULL_RUN = 2_000
const PROGRESS_EVERY_MS = 30_000

type CommandOf<T extends Command['type']> = Extract<Command, { readonly type: T }>

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function replay({ seed, bug }: CommandOf<'replay'>): Promise<boolean> {
  const report = await catchStrays(seed, () => simulate(seed, { bug, keepsLines: true }))
  for (const line of report.lines) say(line)
  for (const { rule, problem } of report.findings) say(`${rule}: ${problem}`)
  const minutes = (report.simulatedMs / 60_000).toFixed(1)
  say(
    `${report.setup}, ${report.jobs} jobs, ${report.steps} steps, ${minutes} simulated minutes, hash ${report.hash.toString(16)}`,
  )
  say(`seeds: 1, failures: ${report.findings.length === 0 ? 0 : 1}`)
  return report.findings.length === 0
}

async function run({ ranges, bug }: CommandOf<'run'>): Promise<boolean> {
  const count = ranges.reduce((sum, range) => sum + range.count, 0)
  for (const range of ranges) say(`seeds ${range.from} to ${range.from + range.count - 1}`)
  const begun = performance.now()
  let done = 0
  let spokenAt = begun
  const onSeed = (): void => {
    done += 1
    if (performance.now() - spokenAt < PROGRESS_EVERY_MS) return
    spokenAt = performance.now()
    say(`${done} of ${count} seeds`)
  }
  const report = await spreadSeeds({ ranges, bug, onSeed })
  const seconds = (performance.now() - begun) / 1000
  for (const [name, times] of Object.entries(report.counts)) say(`${String(times).padStart(9)}  ${name}`)
  for (const { seed, setup, problems } of report.failures) {
    say(`seed ${seed} (${setup}):`)
    for (const problem of problems) say(`  ${problem}`)
    say(`  replay: npm run sim -- --seed ${seed}${bug === undefined ? '' : ` --bug ${bug}`}`)
  }
  const weak = bug === undefined && count >= FULL_RUN ? floor(report.counts) : []
  for (const problem of weak) say(problem)
  const hours = (report.simulatedMs / 3_600_000).toFixed(1)
  const rate = `${Math.round(report.steps / seconds)} steps/s, ${(report.seeds / seconds).toFixed(1)} seeds/s`
  say(`${report.steps} steps, ${hours} simulated hours in ${seconds.toFixed(0)} s: ${rate}`)
  say(`seeds: ${report.seeds}, failures: ${report.failures.length}`)
  return report.failures.length + weak.length === 0
}

async function main(): Promise<boolean> {
  const command = readCommand(process.argv.slice(2))
  switch (command.type) {
    case 'help':
      say(HELP)
      return true
    case 'wrong':
      say(`${command.problem}\n\n${HELP}`)
      return false
    case 'replay':
      return replay(command)
    case 'run':
      return run(command)
    case 'exhaustive':
      return runExhaustive(command, say)
  }
}

process.exitCode = (await main()) ? 0 : 1
