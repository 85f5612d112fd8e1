import { describe, test } from 'vitest'
import { checkDurability } from './durability.ts'
import { checkDurableGuards, checkGuards } from './guards.ts'
import { checkAgeing, checkItems, checkLanes } from './items.ts'
import { checkExpiry, checkFallback, checkLeases } from './leases.ts'
import { checkAgainstModel } from './model.ts'
import { checkPages } from './pages.ts'
import { checkDrops, checkDurableLives, checkRecordExpiry } from './record-lives.ts'
import { checkAtomicity, checkLists, checkRecords } from './records.ts'
import { checkDurableRuns, checkHandBack, checkRuns } from './runs.ts'
import { checkCounts, checkDurableSearches, checkSearches } from './searches.ts'
import type { Check, CheckDurable, StorageUnderTest } from './storage-under-test.ts'
import { checkClock, checkConcurrency, checkHints, checkPeek } from './views.ts'

export interface DescribeOptions {
  /** Cases that this backend skips, with a reason that a reviewer accepted. */
  readonly without?: { readonly reason: string; readonly titles: readonly string[] }
  /** It keeps no data after its process ends: the cases that restart it are skipped. */
  readonly isVolatile?: boolean
}

/** Far more than any case takes: these timeouts only end cases that hang. The model opens a hundred storages. */
const CASE_MS = 60_000
const MODEL_MS = 300_000

/**
 * The contract of every storage. A backend passes all cases: there are no capability flags. Only a storage that cannot
 * be restarted, because it keeps no data after its process ends, skips the cases that restart it.
 */
export function describeStorage(
  name: string,
  open: () => Promise<StorageUnderTest>,
  { without, isVolatile = false }: DescribeOptions = {},
): void {
  const register = (title: string, run: () => Promise<void>, timeout = CASE_MS): void => {
    if (without?.titles.includes(title) === true) return
    // oxlint-disable-next-line vitest/expect-expect -- the expectations are in the case that is handed in
    test(title, { timeout }, run)
  }
  const check: Check = (title, run) => register(title, () => withStorage(open, run))
  const checkDurable: CheckDurable = (title, run) => {
    if (isVolatile) return
    register(title, () =>
      withStorage(open, (it) => run(it, () => it.reopen?.() ?? Promise.reject(new Error('cannot be reopened')))),
    )
  }

  describe(`${name} storage`, () => {
    checkClock(check)
    checkRecords(check)
    checkAtomicity(check)
    checkLists(check)
    checkRecordExpiry(check)
    checkDrops(check)
    checkSearches(check)
    checkPages(check)
    checkCounts(check)
    checkItems(check)
    checkAgeing(check)
    checkLanes(check)
    checkLeases(check)
    checkFallback(check)
    checkExpiry(check)
    checkRuns(check)
    checkGuards(check)
    checkHandBack(check)
    checkPeek(check)
    checkHints(check)
    checkConcurrency(check)
    checkDurability(checkDurable)
    checkDurableRuns(checkDurable)
    checkDurableLives(checkDurable)
    checkDurableSearches(checkDurable)
    checkDurableGuards(checkDurable)
    register('[G-01] sequences of 40 commands agree with the reference model', () => checkAgainstModel(open), MODEL_MS)
  })
}

async function withStorage(
  open: () => Promise<StorageUnderTest>,
  run: (it: StorageUnderTest) => Promise<void>,
): Promise<void> {
  const it = await open()
  try {
    await run(it)
  } finally {
    await it.close()
  }
}
