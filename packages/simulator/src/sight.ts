import type { Batch, ItemView, Job, Queue, Storage } from '@impresario/core'
import { placesOf } from './checkers/wake-up.ts'
import type { Sight } from './checkers/wake-up.ts'
import type { ItemRef, Version } from './chronicle.ts'

/**
 * Reads everything that these jobs need, and everything that should be gone, at one moment: every query is sent before
 * the first reply is awaited.
 */
export async function lookAround(
  storage: Storage,
  jobs: readonly Version[],
  gone: readonly ItemRef[],
): Promise<{ readonly sight: Sight; readonly remains: readonly ItemRef[] }> {
  const places = jobs.map(({ job }) => placesOf(job))
  const items = places.flatMap((place) => place.items)
  const others = [...new Set(places.flatMap((place) => place.jobs))]
  const asking = items.map(({ queue, id }) => storage.peek(queue, [id]))
  const reading = others.map((id) => storage.read('job', id))
  const missing = gone.map(({ queue, id }) => storage.peek(queue, [id]))
  const views = new Map<string, ItemView>()
  for (const [index, { queue, id }] of items.entries()) {
    const view = (await asking[index])?.[0]
    if (view !== undefined) views.set(`${queue}/${id}`, view)
  }
  const known = new Map<string, Job>()
  for (const [index, id] of others.entries()) {
    const stored = await reading[index]
    if (stored !== undefined) known.set(id, stored.value)
  }
  const remains: ItemRef[] = []
  for (const [index, ref] of gone.entries()) {
    if ((await missing[index])?.[0] !== undefined) remains.push(ref)
  }
  const sight: Sight = { item: (queue, id) => views.get(`${queue}/${id}`), job: (id) => known.get(id) }
  return { sight, remains }
}

/** The jobs that a batch may have affected by removing their items. */
export function neighboursOf(batch: Batch): readonly string[] {
  const found = new Set<string>()
  const taken: readonly { readonly queue: Queue; readonly id: string }[] =
    batch.settle === undefined ? (batch.remove ?? []) : [...(batch.remove ?? []), batch.settle]
  for (const { queue, id } of taken) {
    const owner = ownerOf(queue, id)
    if (owner === undefined) continue
    found.add(owner)
    const parent = PARENT.exec(owner)?.[1]
    if (queue === 'mail' && parent !== undefined) found.add(parent)
  }
  return [...found]
}

const PARENT = /^(.+)-\d+-\w+$/
const TASK = /^(.+)\.\d+\.\w+$/

function ownerOf(queue: Queue, id: string): string | undefined {
  switch (queue) {
    case 'turns':
      return id
    case 'tasks':
      return TASK.exec(id)?.[1]
    case 'timers':
      return id.slice(0, id.lastIndexOf('.'))
    case 'mail':
      return id.slice(0, id.indexOf('.'))
    case 'outbox':
    case 'leaders':
    case 'signals':
    case 'firings':
    case 'events':
      return undefined
  }
}
