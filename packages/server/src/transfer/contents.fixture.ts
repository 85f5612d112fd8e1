import { setImmediate as immediate } from 'node:timers/promises'
import { KINDS, QUEUES } from '@impresario/core'
import type { Batch, Item, ItemView, Put, Queue, Storage } from '@impresario/core'
import type { Json } from '@impresario/protocol'

/** The same numbers for the same seed. */
function chance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

const HOUR_MS = 3_600_000
/** Without signals, which a storage need not keep. */
export const CLAIMED: readonly Queue[] = QUEUES.filter((queue) => queue !== 'signals')
const TEXTS = ['', 'plain', 'Straße "ß" \\ \u0000 \n', '日本語 🎭', 'a'.repeat(3_000), '\uD800 half']

/** Spans that are over soon, or not for as long as a test runs. */
const SOON_MS = 5

/**
 * Fills a storage through its port with records and items of all kinds in every state: expiring ones, due and delayed ones,
 * claimed ones with and without a named holder, some handed back, some run out of time. What is to be over soon is over
 * when this resolves.
 */
export async function fill(storage: Storage, seed: number, count: number): Promise<void> {
  const next = chance(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!
  const maybe = <T>(value: () => T): T | undefined => (next() < 0.5 ? value() : undefined)
  const span = (): number => (next() < 0.3 ? SOON_MS * next() : HOUR_MS * (1 + next()))
  const value = (): Json => ({ text: pick(TEXTS), number: pick([0, -1.5, 1e21, 2 ** 40, 0.1]), list: [null, true, {}] })
  const put = (index: number): Put => {
    const facets = {
      ...optional(
        'owner',
        maybe(() => pick(['ann', 'bob', 'ünï'])),
      ),
      ...optional(
        'status',
        maybe(() => pick(['waiting', 'finished', 'failed'])),
      ),
      ...optional(
        'name',
        maybe(() => pick(['echo', 'fan'])),
      ),
      ...optional(
        'text',
        maybe(() => `Film ${index} ÄÖ`),
      ),
    }
    const version = 1
    const id = `${pick(['a', 'ß', 'z', '0'])}-${index}`
    return putOf({ kind: pick(KINDS), id, value: value(), version, facets, ...optional('expiresMs', maybe(span)) })
  }
  const item = (index: number): Item => ({
    queue: pick(CLAIMED),
    id: `${pick(['i', 'é', 'Z'])}-${index}`,
    lane: pick(['one', 'two', 'drei ü']),
    priority: pick([0, 1, -2, 0.5, 10]),
    delayMs: next() < 0.6 ? 0 : span(),
    payload: value(),
    ...optional(
      'fallback',
      maybe(() => ({ lane: pick(['one', 'spare']), afterMs: span() })),
    ),
    ...optional('unclaimedMs', maybe(span)),
    ...optional('settleMs', maybe(span)),
    ...optional('runMs', maybe(span)),
  })
  const batches = Array.from({ length: count }, (_, index): Batch => {
    return { put: [put(index)], enqueue: [item(index), item(count + index)] }
  })
  await Promise.all(
    batches.map(async (batch) => {
      const isUpdated = next() < 0.3
      await storage.commit(batch)
      const { put: [first] = [] } = batch
      // A second version: records that came to their facets by an update.
      if (first !== undefined && isUpdated) await storage.commit({ put: [{ ...first, version: 2 }] })
    }),
  )
  for (const queue of CLAIMED) {
    const share = Math.ceil(count / 12)
    await storage.claim(queue, { limit: share, leaseMs: HOUR_MS, holder: `worker-${queue}` })
    await storage.claim(queue, { limit: share, leaseMs: 2, holder: 'briefly' })
    await storage.claim(queue, { limit: share, leaseMs: HOUR_MS })
    const { leases } = await storage.claim(queue, { limit: 3, leaseMs: HOUR_MS, holder: 'gives back' })
    await storage.renew(leases, 0)
  }
  await untilPassed(storage, 3 * SOON_MS)
  for (const queue of CLAIMED) await storage.claimExpired(queue, { limit: 5, leaseMs: HOUR_MS })
  await storage.sync()
}

/** Waits until this much time has passed on the storage's own clock. */
async function untilPassed(storage: Storage, ms: number): Promise<void> {
  const until = (await storage.now()) + ms
  while ((await storage.now()) < until) await immediate()
}

/** What can be seen of a storage through its port, but for moments. */
export async function seen(storage: Storage, ids: Readonly<Record<Queue, readonly string[]>>): Promise<unknown> {
  const records = await Promise.all(
    KINDS.map(async (kind) => ({
      kind,
      list: await storage.list(kind, { limit: 100_000 }),
      search: (await storage.list(kind, { limit: 100_000, search: 'film 1' })).map(({ id }) => id),
      counts: await storage.counts(kind, {}),
      ofAnn: await storage.counts(kind, { owner: 'ann' }),
    })),
  )
  const items = await Promise.all(
    QUEUES.map(async (queue) => ({
      queue,
      lanes: [...(await storage.lanes(queue))].sort((a, b) => (a.lane < b.lane ? -1 : 1)),
      views: (await storage.peek(queue, ids[queue])).map(withoutMoments),
    })),
  )
  return { records, items }
}

function withoutMoments(view: ItemView | undefined): unknown {
  if (view === undefined) return undefined
  const { dueInMs, lease, ...rest } = view
  return { ...rest, isDue: dueInMs === 0, lease: lease && { token: lease.token, holder: lease.holder } }
}

/** Boundary: storages do not look into values, so that any value does for any kind. */
function putOf(put: Omit<Put, 'value'> & { readonly value: Json }): Put {
  return put as unknown as Put
}

function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: V }
}
