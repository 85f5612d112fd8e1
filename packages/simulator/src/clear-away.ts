import type { Storage } from '@impresario/core'
import type { Fleet, Setting } from './fleet.ts'
import { leftovers, loads } from './judge.ts'

/** How long obsolete letters and turns may remain: the longest lease, and a margin. */
const CLEAR_MS = 60_000
const LOOK_EVERY_MS = 2_000

/**
 * A process may die of a write that began before the faults ended (seed 5001401), and its storage refuses every read
 * from then on. The supervisor starts another one within seconds.
 */
const RESTART_MS = 60_000

/** Runs the world until no item of an ended job is left, or until the time limit. */
export async function clearAway({ world, chronicle }: Setting, fleet: Fleet, storageOf: () => Storage): Promise<void> {
  const patience = world.now + RESTART_MS
  await world.run(() => fleet.isWhole || world.now > patience)
  const limit = world.now + CLEAR_MS
  while (world.now < limit) {
    const until = Math.min(limit, world.now + LOOK_EVERY_MS)
    await world.run(() => world.now >= until)
    const found = await leftovers(storageOf(), chronicle.entries)
    if (found.length === 0 && loads(fleet).length === 0) return
  }
}
