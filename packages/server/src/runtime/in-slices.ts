import { setImmediate as nextTick } from 'node:timers/promises'

/**
 * So many items of a batch are worked on before other work runs: a job of 2 kB takes up to a millisecond until it is
 * in the hands of the storage, so that 500 at once would stop everybody for half a second.
 */
const SLICE_ITEMS = 25

/**
 * Works on a batch slice by slice. All slices are under way together, so that they share a durable write; only their
 * beginnings are apart. Gives what the slices gave, in order.
 */
export async function inSlices<T, R>(
  items: readonly T[],
  work: (slice: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const begun: Promise<readonly R[]>[] = []
  for (let at = 0; at < items.length; at += SLICE_ITEMS) {
    if (at > 0) await nextTick()
    const slice = work(items.slice(at, at + SLICE_ITEMS))
    // It may fail while the next one is waited for; it is told below.
    slice.catch(() => {})
    begun.push(slice)
  }
  return (await Promise.all(begun)).flat()
}
