import { createMemoryStorage } from '@impresario/storage-embedded'
import type { ListQuery, Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { EventListeners } from './event-listeners.ts'
import type { PublishedEvent } from './event-log.ts'
import { subscriptionsOf } from './record.ts'
import type { AutomationRecord } from './record.ts'

const COUNT = 100_000
const OWNER = 'anna'

/** A kind of trigger for each: exact, one name open, all below open, and a wildcard in front for a few. */
function topicOf(n: number): string {
  const shop = `shop${n % 20_000}`
  if (n % 1_000 === 0) return `*.order.made${n}`
  return [`${shop}.order.paid`, `${shop}.order.*`, `${shop}.#`, `${shop}.stock.low`][n % 4] ?? ''
}

async function filled(): Promise<Storage> {
  const storage = createMemoryStorage({ now: () => 0 })
  for (let from = 0; from < COUNT; from += 5_000) {
    const put = Array.from({ length: 5_000 }, (_, at) => {
      const n = from + at
      const id = `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
      const definition = { calendars: { exclude: [], only: [] }, triggers: [{ kind: 'event', topic: topicOf(n) }] }
      return subscriptionsOf({ id, owner: OWNER, status: 'active', definition } as unknown as AutomationRecord)
    })
    await storage.commit({ put: put.flat() })
  }
  return storage
}

test('[K-04] among 100,000 triggers an event looks at those of its own topic and at few others', async () => {
  const inner = await filled()
  const asked: { readonly query: ListQuery; readonly rows: number }[] = []
  const list: Storage['list'] = async (kind, query) => {
    const rows = await inner.list(kind, query)
    asked.push({ query, rows: rows.length })
    return rows
  }
  const storage = { ...inner, list }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const listeners = new EventListeners({ storage, log })
  const base = { id: 'e', payload: null, owner: OWNER, at: 0 } as const
  const heard = async (event: PublishedEvent): Promise<number> => {
    let count = 0
    for await (const one of listeners.of(event)) count += one.topic === '' ? 0 : 1
    return count
  }
  // 20,000 is a multiple of four: all five triggers of one shop are of one kind.
  const wanted = { 'shop8.order.paid': 5, 'shop9.order.paid': 5, 'shop10.order.paid': 5, 'shop11.order.paid': 0 }
  for (const [topic, count] of Object.entries(wanted)) {
    asked.length = 0
    expect([topic, await heard({ ...base, topic, audience: 'own' })]).toEqual([topic, count])
    // The exact name, and one for each beginning of it; a wildcard in front is compared with every event.
    expect(asked).toHaveLength(5)
    expect(asked.every(({ query }) => query.name !== undefined)).toBe(true)
    expect(asked.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThanOrEqual(5 + COUNT / 1_000)
    expect(await heard({ ...base, topic, owner: 'admin', audience: 'all' })).toBe(count)
    expect(await heard({ ...base, topic, owner: 'ben', audience: 'own' })).toBe(0)
  }
})
