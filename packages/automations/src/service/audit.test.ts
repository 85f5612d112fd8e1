import type { Batch, Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { ADMIN, ANNA, BEN, Office, StillClock } from './office.fixture.ts'

const SAY = [{ id: 'say', uses: 'echo', with: { text: 'x' } }]

/** A storage that remembers what was committed, and can be told to refuse. */
class WatchedStorage {
  readonly batches: Batch[] = []
  refuses = false
  readonly storage: Storage

  constructor(storage: Storage) {
    this.storage = new Proxy(storage, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (name === 'commit') return (batch: Batch) => this.#commit(target, batch)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }

  async #commit(storage: Storage, batch: Batch): Promise<'committed' | 'conflict'> {
    if (this.refuses) throw new Error('The disk is full.')
    this.batches.push(batch)
    return storage.commit(batch)
  }
}

test('[K-13] [K-17] defect 22: each change of an automation is one commit with its one audit entry, or nothing of both', async () => {
  const clock = new StillClock()
  const seen = new WatchedStorage(testStorage({ now: clock.now }))
  const office = new Office({ storage: seen.storage, clock })
  const { automations } = office
  const definition = { title: 'Watched', triggers: [{ every: 3_600 }], pipeline: SAY }
  const { id } = await automations.create(definition, ANNA)
  const changes: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['automation.updated', () => automations.update(id, { ...definition, priority: 2 }, ANNA)],
    ['automation.snoozed', () => automations.snooze(id, 60, ANNA, 'lunch')],
    ['automation.paused', () => automations.pause(id, ANNA)],
    ['automation.resumed', () => automations.resume(id, ANNA)],
    ['automation.canceled', () => automations.cancel(id, ANNA)],
  ]
  for (const [action, change] of changes) {
    const [record, log] = [await automations.read(id, ANNA), await automations.audit({ subject: id, limit: 100 })]
    seen.refuses = true
    await expect(change()).rejects.toThrow('The disk is full.')
    seen.refuses = false
    expect(await automations.read(id, ANNA)).toEqual(record)
    expect(await automations.audit({ subject: id, limit: 100 })).toEqual(log)
    seen.batches.length = 0
    await change()
    const kinds = seen.batches.map(({ put = [] }) => put.map(({ kind }) => kind))
    const written = kinds.filter((one) => one.includes('automation') || one.includes('audit'))
    expect({ action, written }).toEqual({ action, written: [expect.arrayContaining(['automation', 'audit'])] })
    expect(written[0]?.filter((kind) => kind === 'audit')).toHaveLength(1)
    const [newest] = (await automations.audit({ subject: id, limit: 1 })).items
    expect(newest).toMatchObject({ action, actor: ANNA.id, subject: id })
  }
})

test('[K-13] the log is read by who did it and when, also where few entries are meant, page by page', async () => {
  const office = new Office()
  const { id } = await office.create({})
  for (let count = 0; count < 30; count += 1) {
    await office.automations.pause(id, count % 10 === 0 ? ADMIN : ANNA)
    await office.automations.resume(id, ANNA)
  }
  const audit = office.automations
  const byAdmin = await audit.audit({ subject: id, actor: ADMIN.id, limit: 100 })
  expect(byAdmin.items.map(({ action, actor }) => [action, actor])).toEqual(
    Array.from({ length: 3 }, () => ['automation.paused', ADMIN.id]),
  )
  const pages: string[] = []
  let before: string | undefined
  do {
    const page = await audit.audit({ subject: id, actor: ADMIN.id, limit: 2, before })
    expect(page.items.length).toBeLessThanOrEqual(2)
    pages.push(...page.items.map((entry) => entry.id))
    before = page.next
  } while (before !== undefined)
  expect(pages).toEqual(byAdmin.items.map((entry) => entry.id))
  expect((await audit.audit({ subject: id, actor: BEN.id, limit: 100 })).items).toEqual([])
})
