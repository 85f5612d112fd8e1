import type { Storage } from '@impresario/core'
import type { Fleet, Setting } from './fleet.ts'
import { leftovers, loads } from './judge.ts'

/** How long it may take until letters and turns that have become pointless are gone: the longest lease, and some. */
const CLEAR_MS = 60_000
const LOOK_EVERY_MS = 2_000

/**
 * A process may die of a write that began before the storm ended (seed 5001401), and its storage refuses every look from
 * then on. The supervisor starts another one within seconds.
 */
const RESTART_MS = 60_000

/** Lets the world go on until nothing is left of the jobs that have ended, or for as long as that may take. */
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
