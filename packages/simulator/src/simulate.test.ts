import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mergeReports, runSeeds } from './run-seeds.ts'
import { simulate } from './simulate.ts'

/** Seeds that once failed. They are kept permanently. */
function keptSeeds(): readonly { readonly seed: number; readonly note: string }[] {
  return JSON.parse(readFileSync(new URL('seeds.json', import.meta.url), 'utf8')) as ReturnType<typeof keptSeeds>
}

test('[C-09] [C-05] [F-05] no job is lost, stuck or ended twice in a hundred worlds full of faults', async () => {
  const report = await runSeeds({ seeds: Array.from({ length: 100 }, (_, index) => index + 1) })
  expect(report.failures).toEqual([])
  const { counts } = report
  // A world in which nothing happens proves nothing: the full run checks every mark, this one the coarse ones.
  expect(counts['jobs that did finish']).toBeGreaterThan(0.9 * (counts['jobs that could finish'] ?? Infinity))
  expect(counts['worlds: cluster']).toBeGreaterThan(30)
  expect(counts['worlds: embedded']).toBeGreaterThan(15)
}, 600_000)

test('[C-09] worlds that once failed stay whole', async () => {
  for (const { seed, note } of keptSeeds()) {
    const { findings } = await simulate(seed)
    expect(findings, `seed ${seed}: ${note}`).toEqual([])
  }
}, 600_000)

test('[C-05] the same seed gives the same world', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const first = await simulate(seed)
    const second = await simulate(seed, { keepsLines: true })
    expect([seed, second.hash, second.steps, second.simulatedMs]).toEqual([
      seed,
      first.hash,
      first.steps,
      first.simulatedMs,
    ])
  }
}, 600_000)

test('[C-05] what two halves of a run report adds up to the whole', async () => {
  const [all, odd, even] = await Promise.all([[7, 8], [7], [8]].map((seeds) => runSeeds({ seeds })))
  if (all === undefined || odd === undefined || even === undefined) throw new Error('Three runs give three reports.')
  expect(mergeReports([even, odd])).toEqual(all)
}, 30_000)
