import { expect, test } from 'vitest'
import { EventPump } from './event-pump.ts'
import { ADMIN, ANNA, BEN, Office } from './office.fixture.ts'

const PUSH = { topic: 'github.push', payload: { branch: 'main' } }

test('[K-04] an event starts the automations whose topic fits, and they read it', async () => {
  const office = new Office()
  const exact = await office.create({ triggers: [{ event: 'github.push' }] })
  const wild = await office.create({ triggers: [{ event: 'github.*' }, { event: 'github.#' }] })
  const all = await office.create({ triggers: [{ event: '#' }] })
  const other = await office.create({ triggers: [{ event: 'gitlab.push' }, { event: 'github.push.#.x'.slice(0, 11) }] })
  const { id } = await office.events.publish(PUSH, ANNA)
  await office.settle()
  for (const { id: one } of [exact, wild, all, other]) expect(await office.runs(one)).toHaveLength(1)
  expect((await office.runs(exact.id))[0]).toMatchObject({ trigger: { kind: 'event', eventId: id, by: 'anna' } })
  expect(office.calls[0]).toEqual({ text: { branch: 'main' } })
  const event = await office.events.read(id, ANNA)
  expect(event.runs).toHaveLength(4)
})

test('[K-04] a filter decides by the payload', async () => {
  const office = new Office()
  const { id } = await office.create({ triggers: [{ event: 'github.push', filter: "event.payload.branch == 'main'" }] })
  await office.events.publish({ ...PUSH, payload: { branch: 'other' } }, ANNA)
  await office.settle()
  expect(await office.runs(id)).toEqual([])
  await office.events.publish(PUSH, ANNA)
  await office.settle()
  expect(await office.runs(id)).toHaveLength(1)
})

test('[K-04] an event that is looked at twice, after a crash, starts nothing twice', async () => {
  const office = new Office()
  const { id } = await office.create({ triggers: [{ event: 'github.push' }], overlap: 'parallel' })
  const event = await office.events.publish(PUSH, ANNA)
  await office.deliveries.tick()
  expect(await office.runs(id)).toHaveLength(1)
  const again = { queue: 'events', id: event.id, lane: 'anna', priority: 0, delayMs: 0, payload: null } as const
  await office.storage.commit({ enqueue: [again] })
  await office.settle()
  expect(await office.runs(id)).toHaveLength(1)
  const started = (await office.audit(id)).filter(({ action }) => action === 'run.started')
  expect(started).toHaveLength(1)
})

test('[K-04] with a key an event is published once, and the key belongs to what was said', async () => {
  const office = new Office()
  const { id } = await office.create({ triggers: [{ event: 'github.push' }], overlap: 'parallel' })
  const first = await office.events.publish({ ...PUSH, idempotencyKey: 'k1' }, ANNA)
  const second = await office.events.publish({ ...PUSH, idempotencyKey: 'k1' }, ANNA)
  expect(second.id).toBe(first.id)
  await expect(office.events.publish({ ...PUSH, topic: 'a.b', idempotencyKey: 'k1' }, ANNA)).rejects.toMatchObject({
    code: 'IDEMPOTENCY_KEY_REUSED',
  })
  await office.settle()
  expect(await office.runs(id)).toHaveLength(1)
})

test('[K-04] events reach automations of their owner; those of admins reach all where they say so', async () => {
  const office = new Office()
  const { id } = await office.create({ triggers: [{ event: 'github.push' }] })
  const event = await office.events.publish(PUSH, BEN)
  await office.settle()
  expect(await office.runs(id)).toEqual([])
  await expect(office.events.read(event.id, ANNA)).rejects.toThrow('not found')
  await expect(office.events.publish({ ...PUSH, audience: 'all' }, BEN)).rejects.toThrow('Only admins')
  await office.events.publish({ ...PUSH, audience: 'all' }, ADMIN)
  await office.settle()
  expect(await office.runs(id)).toHaveLength(1)
})

test('[K-04] what is not a topic, and what is too long, is refused', async () => {
  const office = new Office()
  await expect(office.events.publish({ topic: 'a b', payload: null }, ANNA)).rejects.toThrow('is not a topic')
  const payload = 'x'.repeat(70_000)
  await expect(office.events.publish({ topic: 'a', payload }, ANNA)).rejects.toThrow('65536 are allowed')
})

test('[K-04] an event that takes longer to bring than a lease is brought once: its lease is renewed meanwhile', async () => {
  const office = new Office()
  const trigger = { event: 'github.push', filter: 'event.payload.branch == params.branch' }
  for (const branch of ['a', 'b', 'main', 'c', 'd', 'e']) {
    await office.create({ triggers: [trigger], params: { branch } })
  }
  const renewed: number[] = []
  const { storage, clock } = office
  const slow = new Proxy(storage, {
    get(target, name) {
      if (name === 'read') {
        return async (kind: 'automation', id: string) => {
          // Each listener takes a while, and all together more than the 60 seconds of a lease.
          if (kind === 'automation') clock.time += 25_000
          return target.read(kind, id)
        }
      }
      if (name === 'renew') {
        return async (leases: Parameters<typeof target.renew>[0], leaseMs: number) => {
          renewed.push(leaseMs)
          return target.renew(leases, leaseMs)
        }
      }
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  const { launcher } = office.automations
  const pump = new EventPump({ storage: slow, launcher, clock, log: office.log })
  const { id } = await office.events.publish(PUSH, ANNA)
  await pump.tick()
  expect(office.log.errors).toEqual([])
  expect(renewed.length).toBeGreaterThan(2)
  expect((await office.events.read(id, ANNA)).runs).toHaveLength(1)
  // Nobody begins again.
  expect(await office.deliveries.tick()).toEqual({ worked: 0 })
})

test('[K-04] an event does not read automations whose filter leaves it out', async () => {
  const office = new Office()
  const filters = [
    "event.payload.branch == 'main'",
    "event.payload.branch == 'next'",
    'event.payload.branch == params.b',
  ]
  for (const filter of filters) {
    await office.create({ params: { b: 'x' }, triggers: [{ event: 'github.push', filter }] })
  }
  const read: string[] = []
  const watching = new Proxy(office.storage, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: readonly string[]): unknown => {
        if (name === 'read' && args[0] === 'automation') read.push(args[1] ?? '')
        return Reflect.apply(value, target, args) as unknown
      }
    },
  })
  const { launcher } = office.automations
  await office.events.publish(PUSH, ANNA)
  await new EventPump({ ...office.parts, storage: watching, launcher, log: office.log }).tick()
  expect(new Set(read).size).toBe(2)
})
