import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { inboxId, listenerId, listenersOf, nextFor, post, reached } from './inbox.ts'
import type { Inbox, Posted } from './inbox.ts'
import type { SentEvent } from './job.ts'

const event = (id: string, at = 1_000, payload = {}): SentEvent => ({ id, topic: 'paid', payload, at, key: 'k' })
const inboxIn = (posted: Posted): Inbox => {
  if (posted.type !== 'added') throw new Error(posted.type)
  return posted.inbox
}
const ids = ({ events }: Inbox): readonly string[] => events.map(({ id }) => id)

test('[B-12] an inbox belongs to one client, topic and key', () => {
  const own = inboxId('ann', 'paid', 'k')
  expect(own).toMatch(/^[\da-f]{32}$/)
  expect(
    new Set([own, inboxId('bob', 'paid', 'k'), inboxId('ann', 'sent', 'k'), inboxId('ann', 'paid', 'l')]).size,
  ).toBe(4)
  const { from, before } = listenersOf(own)
  const id = listenerId(own, { jobId: 'j', visit: 3 })
  expect(id >= from && id < before).toBe(true)
})

test('[B-12] events are added in order, and a repeated one is known', () => {
  const one = inboxIn(post(undefined, event('a')))
  const two = inboxIn(post(one, event('b')))
  expect(ids(two)).toEqual(['a', 'b'])
  expect(post(two, event('a'))).toMatchObject({ type: 'known', event: { id: 'a' } })
})

test('[B-12] after a day an event is gone', () => {
  const old = inboxIn(post(undefined, event('a')))
  expect(ids(inboxIn(post(old, event('b', 1_000 + LIMITS.keptEventMs))))).toEqual(['b'])
  expect(nextFor(old, { at: 1_000 + LIMITS.keptEventMs, createdAt: 0, known: [] })).toBeUndefined()
})

test('[B-12] what no job has had makes no room for others', () => {
  let inbox: Inbox | undefined
  for (let count = 0; count < LIMITS.keptEventsMax; count += 1) inbox = inboxIn(post(inbox, event(`e${count}`)))
  expect(post(inbox, event('x')).type).toBe('full')
  const room = reached(inbox ?? { events: [] }, 'e7')
  expect(ids(inboxIn(post(room, event('x'))))).not.toContain('e7')
  const large = { text: 'x'.repeat(LIMITS.inboxBytesMax / 2) }
  const heavy = inboxIn(post(undefined, event('a', 1_000, large)))
  expect(post(heavy, event('b', 1_000, large)).type).toBe('full')
  expect(ids(inboxIn(post(reached(heavy, 'a'), event('b', 1_000, large))))).toEqual(['b'])
})

test('[B-12] a job gets what no job has had, and what came since it was there, each once', () => {
  const inbox = inboxIn(post(inboxIn(post(undefined, event('a', 10))), event('b', 20)))
  const wait = { at: 30, createdAt: 15, known: [] }
  expect(nextFor(undefined, wait)).toBeUndefined()
  expect(nextFor(inbox, wait)?.id).toBe('a')
  expect(nextFor(inbox, { ...wait, known: ['a'] })?.id).toBe('b')
  const had = reached(reached(inbox, 'a'), 'b')
  expect(nextFor(had, wait)?.id).toBe('b')
  expect(nextFor(had, { ...wait, createdAt: 25 })).toBeUndefined()
})
