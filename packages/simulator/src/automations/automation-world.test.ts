import { describe, expect, test } from 'vitest'
import { AUTOMATION_BUGS } from './automation-bugs.ts'
import type { AutomationBugName } from './automation-bugs.ts'
import { SINGLE_FAULTS } from '../exhaustive/planned-link.ts'
import { runAutomationWorld, runStruckWorld } from './automation-world.ts'

const SEEDS = Array.from({ length: 4 }, (_, at) => 100 + at)
/** First those that show most of the bugs. */
const BUG_SEEDS = [202, 201, 200, ...Array.from({ length: 37 }, (_, at) => 203 + at)]
const BUGS = Object.entries(AUTOMATION_BUGS) as [AutomationBugName, { readonly says: string }][]

describe('[K-03] [K-04] [K-06] [K-08] [K-15] [K-16] automations in a world with downtime, two processes, jumping clocks and crashes', () => {
  test('without faults each occurrence runs, or is skipped for a reason', async () => {
    const report = await runAutomationWorld(1, { isQuiet: true })
    expect(report.findings).toEqual([])
    expect(report.runs).toBeGreaterThan(100)
  })

  test.each(SEEDS)(
    'each occurrence has one run or one logged skip; each event, delivery and crossing one run; budgets count, and each report once: seed %i',
    async (seed) => {
      const { findings } = await runAutomationWorld(seed)
      expect(findings).toEqual([])
    },
  )

  test('a crash or a lost call at any write loses nothing and doubles nothing (some of the calls here)', async () => {
    const { calls, findings } = await runStruckWorld(new Map())
    expect(findings).toEqual([])
    for (let call = 0; call < calls; call += 59) {
      for (const fault of SINGLE_FAULTS) {
        const struck = await runStruckWorld(new Map([[call, fault]]))
        expect({ call, fault, findings: struck.findings }).toEqual({ call, fault, findings: [] })
      }
    }
  })

  test('the same seed is the same world', async () => {
    expect(await runAutomationWorld(7)).toEqual(await runAutomationWorld(7))
  })

  test.each(BUGS)('a planted bug is found: %s %o', async (bug) => {
    let found = 0
    for (const seed of BUG_SEEDS) {
      found = (await runAutomationWorld(seed, { bug })).findings.length
      if (found > 0) break
    }
    expect(found).toBeGreaterThan(0)
  })
})
