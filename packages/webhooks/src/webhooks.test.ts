import { LIMITS } from '@impresario/protocol'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { answered, Bench, deriveSecret, HOOK } from './bench.fixture.ts'
import type { DeliveryStatus } from './delivery.ts'
import { endpointAddress, endpointId, newEndpoint, putEndpoint } from './endpoint.ts'
import { STRICT_POLICY } from './outbound.ts'
import { Webhooks } from './webhooks.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

function stage(): { bench: Bench; webhooks: Webhooks; id: string } {
  const bench = new Bench()
  const { storage, clock } = bench
  const webhooks = new Webhooks({ storage, clock, deriveSecret, policy: STRICT_POLICY })
  return { bench, webhooks, id: endpointId('acme', endpointAddress(HOOK)) }
}

/** Verifies what was sent last, at the time when it was sent. */
function verifies(bench: Bench, secret: string): boolean {
  const parcel = bench.deliver.parcels.at(-1)
  const signed = new Webhook(secret).sign(
    parcel?.headers['webhook-id'] ?? '',
    new Date(Number(parcel?.headers['webhook-timestamp']) * 1_000),
    parcel?.body ?? '',
  )
  return (parcel?.headers['webhook-signature'] ?? '').split(' ').includes(signed)
}

test('[H-07] while a secret is replaced both sign, and afterwards only the new one', async () => {
  const { bench, webhooks, id } = stage()
  await bench.post(bench.message('1'))
  await bench.pass()
  const first = await webhooks.secret('acme', id)
  expect(first.oldSecretUntil).toBeUndefined()
  expect(verifies(bench, first.secret)).toBe(true)
  const second = await webhooks.rotateSecret('acme', id)
  expect(second.oldSecretUntil).toBe(bench.clock.now() + DAY)
  await bench.post(bench.message('2'))
  await bench.pass()
  expect([verifies(bench, first.secret), verifies(bench, second.secret)]).toEqual([true, true])
  await bench.post(bench.message('3'))
  await bench.pass(DAY)
  expect([verifies(bench, first.secret), verifies(bench, second.secret)]).toEqual([false, true])
  expect(await webhooks.secret('acme', id)).toEqual({ secret: second.secret, oldSecretUntil: undefined })
  const third = await webhooks.rotateSecret('acme', id, 0)
  await bench.post(bench.message('4'))
  await bench.pass()
  expect([verifies(bench, second.secret), verifies(bench, third.secret)]).toEqual([false, true])
  // Nothing of a secret is in the storage.
  const stored = JSON.stringify([await bench.storage.read('endpoint', id), await bench.storage.read('delivery', '4')])
  expect(stored).not.toContain(third.secret.slice('whsec_'.length))
})

test('[H-07] a secret is replaced once for each key, however often that is asked', async () => {
  const { bench, webhooks, id } = stage()
  await webhooks.declareEndpoint('acme', HOOK)
  const once = { clientId: 'acme', key: 'spring' }
  const [first, beside] = await Promise.all([
    webhooks.rotateSecret('acme', id, DAY, once),
    webhooks.rotateSecret('acme', id, DAY, once),
  ])
  expect(beside).toEqual(first)
  expect(await webhooks.rotateSecret('acme', id, DAY, once)).toEqual(first)
  const reused = { code: 'IDEMPOTENCY_KEY_REUSED' }
  await expect(webhooks.rotateSecret('acme', id, 0, once)).rejects.toMatchObject(reused)
  const second = await webhooks.rotateSecret('acme', id, DAY, { ...once, key: 'autumn' })
  expect(second.secret).not.toBe(first.secret)
  // Also after another one has followed.
  expect((await webhooks.rotateSecret('acme', id, DAY, once)).secret).toBe(second.secret)
  expect((await bench.storage.read('endpoint', id))?.value).toMatchObject({ rotation: 2 })
})

test('[H-07] an endpoint can be declared, so that its secret is known before the first message', async () => {
  const { bench, webhooks, id } = stage()
  const declared = await webhooks.declareEndpoint('acme', `${HOOK}?a=b`)
  expect(declared.address).toBe(HOOK)
  expect(await webhooks.declareEndpoint('acme', HOOK)).toEqual(declared)
  const { secret } = await webhooks.secret('acme', id)
  await bench.post(bench.message('1', { url: `${HOOK}?job=1` }))
  await bench.pass()
  expect(verifies(bench, secret)).toBe(true)
  await expect(webhooks.declareEndpoint('acme', 'https://10.0.0.1/')).rejects.toThrow('"url" points to this machine')
})

test('[H-07] a failed message is redelivered under its id, with all attempts anew, whatever the state of its endpoint', async () => {
  const { bench, webhooks, id } = stage()
  bench.deliver.answer = () => answered(410)
  await bench.post(bench.message('m'))
  await bench.pass()
  expect((await webhooks.endpoint('acme', id)).disabled?.reason).toBe('gone')
  expect(await webhooks.redeliver('acme', 'm')).toMatchObject({ status: 'pending', tries: 0 })
  await bench.pass()
  expect(await webhooks.delivery('acme', 'm')).toMatchObject({ status: 'failed', tries: 1, isForced: false })
  bench.deliver.answer = () => answered(200)
  await webhooks.redeliver('acme', 'm')
  await bench.pass()
  const delivery = await webhooks.delivery('acme', 'm')
  expect(delivery.attempts.map(({ status }) => status)).toEqual([410, 410, 200])
  expect(delivery.status).toBe('delivered')
  expect((await webhooks.endpoint('acme', id)).disabled).toBeNull()
  expect(new Set(bench.deliver.parcels.map(({ headers }) => headers['webhook-id']))).toEqual(new Set(['m']))
})

test('[H-07] a delivered message can be sent once more; one that waits for hours is sent at once; one that is due is left alone', async () => {
  const { bench, webhooks } = stage()
  await bench.post(bench.message('done'))
  await bench.pass()
  await webhooks.redeliver('acme', 'done')
  await bench.pass()
  expect((await webhooks.delivery('acme', 'done')).attempts).toHaveLength(2)
  bench.deliver.answer = () => answered(503, { retryAfter: '7200' })
  await bench.post(bench.message('late'))
  await bench.pass()
  bench.deliver.answer = () => answered(200)
  await webhooks.redeliver('acme', 'late')
  expect(await bench.dueInMs('late')).toBe(0)
  // Asked twice: the second changes nothing.
  await webhooks.redeliver('acme', 'late')
  await bench.pass()
  expect(await webhooks.delivery('acme', 'late')).toMatchObject({ status: 'delivered', tries: 1 })
  expect(bench.deliver.parcels).toHaveLength(4)
})

test('[H-07] what waits for an endpoint is sent at once when somebody enables it, and nothing else is', async () => {
  const { bench, webhooks, id } = stage()
  bench.deliver.answer = () => answered(500)
  const waiting = Array.from({ length: 250 }, (_, index) => `m${index}`)
  await bench.post(...waiting.map((one) => bench.message(one)))
  await bench.post(bench.message('elsewhere', { url: 'https://elsewhere.example/' }))
  // Most were never tried: the circuit is open after five failures, and each that comes to its turn meets the pause.
  for (let seconds = 0; seconds < 20; seconds += 1) await bench.pass(1_000)
  bench.deliver.answer = () => answered(200)
  bench.deliver.parcels.length = 0
  expect((await webhooks.endpoint('acme', id)).circuit).toBe('open')
  await bench.pass()
  expect(bench.deliver.parcels).toEqual([])
  const elsewhere = await bench.dueInMs('elsewhere')
  const { released } = await webhooks.enable('acme', id)
  expect(released).toBe(250)
  expect(await bench.dueInMs('elsewhere')).toBe(elsewhere)
  await bench.pass()
  // So many go at a time that others wait for a moment: far less than the pause.
  for (let seconds = 0; seconds < 20; seconds += 1) await bench.pass(1_000)
  const statuses = await Promise.all(waiting.map(async (one) => (await webhooks.delivery('acme', one)).status))
  expect(new Set(statuses)).toEqual(new Set(['delivered']))
  // Enabled twice, or with nothing that waits: nothing happens.
  expect(await webhooks.enable('acme', id)).toMatchObject({ released: 0 })
})

test('[H-07] a disabled endpoint that is enabled again gets messages', async () => {
  const { bench, webhooks, id } = stage()
  bench.deliver.answer = () => answered(410)
  await bench.post(bench.message('1'))
  await bench.pass()
  expect(await webhooks.enable('acme', id)).toMatchObject({
    endpoint: { disabled: null, circuit: 'closed', failures: 0 },
    released: 0,
  })
  bench.deliver.answer = () => answered(200)
  await bench.post(bench.message('2'))
  await bench.pass()
  expect((await webhooks.delivery('acme', '2')).status).toBe('delivered')
})

test('[H-07] the log is listed page by page, by job, event and status', async () => {
  const { bench, webhooks } = stage()
  bench.deliver.answer = ({ url }) => answered(url.endsWith('gone') ? 410 : 200)
  const messages = Array.from({ length: 25 }, (_, n) =>
    bench.message(`m${String(n).padStart(2, '0')}`, {
      jobId: `job-${n % 5}`,
      event: n % 2 === 0 ? 'job_finished' : 'job_failed',
      url: n % 3 === 0 ? 'https://hooks.example/gone' : HOOK,
    }),
  )
  await bench.post(
    ...messages,
    bench.message('other', { clientId: 'other' }),
    bench.message('m99', { jobId: 'job-10' }),
  )
  for (let rounds = 0; rounds < 10; rounds += 1) await bench.pass(1_000)
  const all = async (
    query: { jobId?: string; event?: string; status?: DeliveryStatus },
    limit: number,
  ): Promise<string[]> => {
    const ids: string[] = []
    let before: string | undefined
    do {
      const page = await webhooks.listDeliveries({ owner: 'acme', before, limit, ...query })
      expect(page.items.length).toBeLessThanOrEqual(limit)
      ids.push(...page.items.map(({ messageId }) => messageId))
      before = page.next
    } while (before !== undefined)
    return ids
  }
  const newest = [...messages].reverse().map(({ messageId }) => messageId)
  expect(await all({}, 7)).toEqual(['m99', ...newest])
  expect(await all({}, 26)).toEqual(['m99', ...newest])
  // Not those of job-10.
  for (const limit of [1, 2, 5, 50]) {
    expect(await all({ jobId: 'job-1' }, limit)).toEqual(['m21', 'm16', 'm11', 'm06', 'm01'])
  }
  expect(await all({ jobId: 'job-nobody' }, 5)).toEqual([])
  expect(await all({ event: 'job_failed' }, 5)).toHaveLength(12)
  const failed = await all({ status: 'failed' }, 4)
  expect(failed).toEqual(newest.filter((id) => Number(id.slice(1)) % 3 === 0))
  const everybody = await webhooks.listDeliveries({ owner: undefined, limit: 100 })
  expect(everybody.items).toHaveLength(27)
  const endpoints = await webhooks.listEndpoints('acme', undefined, 1)
  const rest = await webhooks.listEndpoints('acme', endpoints.next, 1)
  expect([...endpoints.items, ...rest.items].map(({ address }) => address).sort()).toEqual([
    'https://hooks.example/gone',
    HOOK,
  ])
  expect(rest.next).toBeUndefined()
})

test('[H-07] what belongs to another client is not there', async () => {
  const { bench, webhooks, id } = stage()
  await bench.post(bench.message('m'))
  await bench.pass()
  const none = { code: 'NOT_FOUND' }
  await expect(webhooks.delivery('other', 'm')).rejects.toMatchObject(none)
  await expect(webhooks.redeliver('other', 'm')).rejects.toMatchObject(none)
  await expect(webhooks.endpoint('other', id)).rejects.toMatchObject(none)
  await expect(webhooks.enable('other', id)).rejects.toMatchObject(none)
  await expect(webhooks.secret('other', id)).rejects.toMatchObject(none)
  await expect(webhooks.rotateSecret('other', id)).rejects.toMatchObject(none)
  await expect(webhooks.delivery('acme', 'nothing')).rejects.toMatchObject(none)
  expect((await webhooks.listDeliveries({ owner: 'other', limit: 5 })).items).toEqual([])
  expect((await webhooks.delivery(undefined, 'm')).status).toBe('delivered')
})

test('[H-07] the log forgets a delivery thirty days after its last change', async () => {
  const { bench, webhooks } = stage()
  await bench.post(bench.message('m'))
  await bench.pass()
  bench.clock.time += 30 * DAY - 1
  expect((await webhooks.delivery('acme', 'm')).status).toBe('delivered')
  bench.clock.time += 1
  await expect(webhooks.delivery('acme', 'm')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('[C-10] a client declares so many endpoints and no more; others are not concerned', async () => {
  const { bench, webhooks, id } = stage()
  await webhooks.declareEndpoint('acme', HOOK)
  const others = Array.from({ length: LIMITS.endpointsMax }, (_, at) => `https://receiver.example/${at}`)
  for (let at = 0; at < others.length; at += 500) {
    const some = others.slice(at, at + 500).map((address) => newEndpoint('acme', address, bench.clock.now()))
    await bench.storage.commit({ put: some.map((endpoint) => putEndpoint(endpoint, 1)) })
  }
  const full = { code: 'LIMIT_EXCEEDED', message: expect.stringContaining('Use fewer addresses') as unknown }
  await expect(webhooks.declareEndpoint('acme', 'https://receiver.example/new')).rejects.toMatchObject(full)
  // A replaced secret keeps an endpoint for good, so that it needs room too. One that is there already is given.
  await expect(webhooks.rotateSecret('acme', id)).rejects.toMatchObject(full)
  await webhooks.declareEndpoint('acme', HOOK)
  await webhooks.declareEndpoint('other', HOOK)
})

test('[C-10] an endpoint that was switched off is forgotten after a year, and never one whose secret was replaced', () => {
  const endpoint = newEndpoint('acme', HOOK, 0)
  const disabled = { at: 0, reason: 'gone' } as const
  expect(putEndpoint({ ...endpoint, disabled }, 1).expiresMs).toBe(366 * DAY)
  expect(putEndpoint({ ...endpoint, disabled, rotation: 1 }, 1).expiresMs).toBeUndefined()
})
