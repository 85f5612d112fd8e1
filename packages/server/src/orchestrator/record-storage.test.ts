import { DAY_MS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { createOrchestrator } from '../orchestrator.ts'

const ANNA = { id: 'anna', isAdmin: false }
const DEFINITION = { title: 'Looped', pipeline: [{ id: 'say', uses: 'log', with: { message: 'x' } }] }

test.each([
  ['[K-13] entries about changes are gone after AUDIT_RETENTION_DAYS', 10, 9, 11],
  ['[K-13] by default they are kept for more than a year', undefined, 399, 401],
])('%s, and the automation stays', async (_, auditRetentionDays, keptDays, goneDays) => {
  const start = Date.parse('2026-03-02T08:00:00Z')
  let time = start
  const storage = testStorage({ now: () => time })
  const settings = { storageUrl: newStorageUrl(), logLevel: 'silent' as const, instanceId: 'one' }
  const kept = auditRetentionDays === undefined ? {} : { auditRetentionDays }
  const { automations } = createOrchestrator({ storage, settings: { ...settings, ...kept } }).parts.automations
  const { id } = await automations.create(DEFINITION, ANNA)
  for (let count = 0; count < 3; count += 1) {
    await automations.pause(id, ANNA)
    await automations.resume(id, ANNA)
  }
  const entries = async (): Promise<number> => (await automations.audit({ subject: id, limit: 100 })).items.length
  expect(await entries()).toBe(7)
  time = start + keptDays * DAY_MS
  expect(await entries()).toBe(7)
  time = start + goneDays * DAY_MS
  expect(await entries()).toBe(0)
  expect(await automations.read(id, ANNA)).toMatchObject({ status: 'active' })
  await storage.close()
})

test('[K-13] zero days keep entries about changes for ever, and those about runs for 90 days', async () => {
  let time = Date.parse('2026-03-02T08:00:00Z')
  const storage = testStorage({ now: () => time })
  const settings = {
    storageUrl: newStorageUrl(),
    logLevel: 'silent' as const,
    instanceId: 'one',
    auditRetentionDays: 0,
  }
  const { automations } = createOrchestrator({ storage, settings }).parts.automations
  const { id } = await automations.create(DEFINITION, ANNA)
  await automations.runNow(id, ANNA)
  const actions = async (): Promise<readonly string[]> =>
    (await automations.audit({ subject: id, limit: 100 })).items.map(({ action }) => action)
  expect(await actions()).toEqual(['run.started', 'automation.created'])
  time += 20 * 365 * DAY_MS
  expect(await actions()).toEqual(['automation.created'])
  await storage.close()
})
