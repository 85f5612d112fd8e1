import { expect, test } from 'vitest'
import { runSeeds } from '../run-seeds.ts'
import { BUGS, isBugName } from './index.ts'

/** Most bugs are found in the first world; none needs more than this many. */
const SEEDS_MAX = 50

test.each(Object.entries(BUGS).map(([name, { says }]) => [name, says]))(
  '[C-09] the simulator notices a planted bug: %s %s',
  async (name) => {
    if (!isBugName(name)) throw new Error(`There is no bug "${name}".`)
    const seeds = Array.from({ length: SEEDS_MAX }, (_, index) => 1_000 + index)
    const report = await runSeeds({ seeds, bug: name, stopsAtFirst: true })
    expect(report.failures).toHaveLength(1)
  },
  60_000,
)
