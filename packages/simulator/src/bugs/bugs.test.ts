import { expect, test } from 'vitest'
import { runSeeds } from '../run-seeds.ts'
import { BUGS, isBugName } from './index.ts'

/** Most bugs are found in the first world. */
const SEEDS_MAX = 100
/** Found about once in a hundred worlds: its search starts shortly before the first of them, and may take longer. */
const RARE = 'expired-keeps-lease'

test.each(Object.entries(BUGS).map(([name, { says }]) => [name, says]))(
  '[C-09] the simulator notices a planted bug: %s %s',
  async (name) => {
    if (!isBugName(name)) throw new Error(`There is no bug "${name}".`)
    const isRare = name === RARE
    const first = isRare ? 1_829 : 1_015
    const seeds = Array.from({ length: isRare ? 500 : SEEDS_MAX }, (_, index) => first + index)
    const report = await runSeeds({ seeds, bug: name, stopsAtFirst: true })
    expect(report.failures).toHaveLength(1)
  },
  600_000,
)
