import { now, sleep } from '../measure.ts'

const LOOK_MS = 5
const PATIENCE_MS = 60_000

/**
 * Polls until nothing is open any more. For contestants that acknowledge after the handler has returned, so that this
 * counts too.
 */
export async function untilNoneOpen(open: () => Promise<number>): Promise<void> {
  const endsAt = now() + PATIENCE_MS
  let left = await open()
  while (left > 0) {
    if (now() > endsAt) throw new Error(`${left} jobs have not ended in ${PATIENCE_MS} ms.`)
    await sleep(LOOK_MS)
    left = await open()
  }
}
