import { afterAll, beforeAll, describe } from 'vitest'
import type { HistoryStore } from '../history.ts'
import type { Ground, HistoryUnderTest } from './history-under-test.fixture.ts'
import { checkCounts, checkLists } from './lists.fixture.ts'
import { checkJobs, checkValues, checkWorkers } from './reading.fixture.ts'
import { checkRetention } from './retention.fixture.ts'
import { checkBatches, checkInstances, checkRestarts } from './writing.fixture.ts'

/**
 * The contract of every history. A backend passes all cases. Only a history that keeps nothing after its process ends
 * skips the cases that restart it.
 */
export function describeHistory(name: string, { place, isDurable }: HistoryUnderTest): void {
  describe(`history in ${name}`, () => {
    let shared: HistoryStore | undefined
    const ground: Ground = {
      place,
      store: () => {
        if (shared === undefined) throw new Error('It is not open yet.')
        return shared
      },
    }
    beforeAll(async () => {
      shared = await (await place()).open()
    })
    afterAll(() => shared?.close())

    checkJobs(ground)
    checkWorkers(ground)
    checkValues(ground)
    checkLists(ground)
    checkCounts(ground)
    checkBatches(ground)
    checkInstances(ground)
    if (isDurable) checkRestarts(ground)
    checkRetention(ground)
  })
}
