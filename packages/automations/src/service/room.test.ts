import type { Kind } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { ANNA, BEN, Office } from './office.fixture.ts'

/*
 * A client in a loop, with records that are as large as they may be, comes to an end. The bounds are small here, so that the
 * end comes soon; the rules are those of the large ones.
 */

const BYTES_MAX = 2_000_000

interface Filled {
  readonly written: number
  readonly refusals: readonly unknown[]
}

/** Writes until not even an empty one has room. */
async function fill(charsMax: number, write: (text: string) => Promise<unknown>): Promise<Filled> {
  const refusals: unknown[] = []
  let [written, chars] = [0, charsMax]
  while (chars >= 0) {
    try {
      await write('x'.repeat(chars))
      written += 1
    } catch (error) {
      refusals.push(error)
      chars = chars < 10 ? -1 : Math.floor(chars * 0.7)
    }
  }
  return { written, refusals }
}

async function storedBytes({ storage }: Office, kind: Kind): Promise<number> {
  const found = await storage.list(kind, { limit: 100_000 })
  return found.reduce((sum, { value }) => sum + Buffer.byteLength(JSON.stringify(value)), 0)
}

function mustSay(refusals: readonly unknown[], ...words: readonly string[]): void {
  expect(refusals.length).toBeGreaterThan(0)
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({ code: 'LIMIT_EXCEEDED' })
    for (const word of words) expect(String(refusal)).toContain(word)
  }
}

test('[C-10] automations of one owner are bounded in bytes, and canceled ones count', async () => {
  const office = new Office({ automationsBytesMax: BYTES_MAX })
  const { written, refusals } = await fill(200_000, async (text) => {
    const { id } = await office.create({ params: { text } })
    await office.automations.cancel(id, ANNA)
  })
  mustSay(refusals, 'canceled ones included', 'Delete those that are not needed', 'AUTOMATIONS_BYTES_MAX')
  expect(written).toBeGreaterThan(100)
  expect(await storedBytes(office, 'automation')).toBeLessThan(10 * BYTES_MAX)
  // Others are not concerned, and who deletes some can go on.
  await office.create({ params: { text: 'x'.repeat(200_000) } }, BEN)
  const { items } = await office.automations.list({ owner: ANNA.id, limit: 100 })
  for (const { id } of items) await office.automations.remove(id, ANNA)
  await office.create({})
})

test('[C-10] an automation does not grow beyond its share by a change, but may become smaller', async () => {
  const office = new Office({ automationsBytesMax: BYTES_MAX })
  const first = await office.create({ params: { text: 'x'.repeat(200_000) } })
  for (let more = 0; more < 20; more += 1) await office.create({})
  const changed = (chars: number): Promise<unknown> =>
    office.automations.update(first.id, { ...first.given, params: { text: 'x'.repeat(chars) } }, ANNA)
  await expect(changed(210_000)).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
  await changed(190_000)
})

test('[C-10] one automation is bounded as it is stored, and a page of them too', async () => {
  const office = new Office()
  const text = 'x'.repeat(250_000)
  await expect(office.create({ params: { one: text, two: text, three: text } })).rejects.toThrow(
    `${LIMITS.automationBytesMax} are allowed. Make its params or its pipeline smaller`,
  )
  for (let more = 0; more < 12; more += 1) await office.create({ params: { text } })
  const seen: string[] = []
  let before: string | undefined
  do {
    const page = await office.automations.list({ owner: ANNA.id, limit: 100, before })
    expect(page.items.length).toBeLessThan(12)
    seen.push(...page.items.map(({ id }) => id))
    before = page.next
  } while (before !== undefined)
  expect(new Set(seen).size).toBe(12)
})

test('[C-10] events of one owner are bounded in bytes; a repeated one is known, however many there are', async () => {
  const office = new Office({ eventsBytesMax: BYTES_MAX })
  const publish = (text: string, idempotencyKey?: string): Promise<{ readonly isNew: boolean }> =>
    office.events.publish({ topic: 'a.b', payload: { text }, idempotencyKey }, ANNA)
  await publish('first', 'key')
  const { written, refusals } = await fill(65_000, (text) => publish(text))
  mustSay(refusals, 'Send less', 'EVENTS_BYTES_MAX')
  expect(written).toBeGreaterThan(100)
  expect(await storedBytes(office, 'event')).toBeLessThan(10 * BYTES_MAX)
  expect(await publish('first', 'key')).toMatchObject({ isNew: false })
  // What is old makes room by itself.
  office.clock.time += 8 * 86_400_000
  await publish('x'.repeat(60_000))
})

test('[C-10] runs that wait for their place are bounded in bytes', async () => {
  const office = new Office()
  office.isWorking = false
  const { id } = await office.create({})
  const params = { text: 'x'.repeat(250_000), more: 'y'.repeat(250_000), most: 'z'.repeat(250_000) }
  const outcomes: string[] = []
  for (let runs = 0; runs < 100; runs += 1) outcomes.push((await office.automations.runNow(id, ANNA, params)).type)
  expect(outcomes.filter((type) => type === 'waiting')).toHaveLength(89)
  expect(outcomes.at(-1)).toBe('skipped')
  expect((await office.automations.runNow(id, ANNA, {})).type).toBe('waiting')
  expect(JSON.stringify(await office.skips(id))).toContain('Send less, or wait until some have run.')
})
