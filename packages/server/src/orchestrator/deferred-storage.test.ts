import type { Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { createMemoryStorage } from '@impresario/storage-embedded'
import { expect, test } from 'vitest'
import { deferredStorage } from './deferred-storage.ts'

const ITEM = { queue: 'turns', id: 'i1', lane: 'a', priority: 0, delayMs: 0, payload: 1 } as const

test('[G-01] calls wait until the storage is open, and those who watch by then hear of it', async () => {
  let open: (storage: Storage) => void = () => undefined
  const storage = deferredStorage(new Promise<Storage>((resolve) => (open = resolve)))
  const heard: string[] = []
  storage.watch('turns', (lane) => heard.push(lane))
  const stop = storage.watch('turns', () => heard.push('stopped'))
  stop()
  const outcome = storage.commit({ enqueue: [ITEM] })
  open(createMemoryStorage({ now: () => 0 }))
  expect(await outcome).toBe('committed')
  expect(heard).toEqual(['a'])
  expect(await storage.lanes('turns')).toEqual([{ lane: 'a', ready: 1 }])
  const { leases } = await storage.claim('turns', { limit: 1, leaseMs: 1_000 })
  expect(await storage.renew(leases, 0)).toEqual([true])
  expect(await storage.peek('turns', ['i1'])).toMatchObject([{ id: 'i1' }])
  expect(await storage.claimExpired('turns', { limit: 1, leaseMs: 1 })).toMatchObject({ leases: [] })
  expect([
    await storage.read('job', 'x'),
    await storage.list('job', { limit: 1 }),
    await storage.counts('job', {}),
  ]).toEqual([undefined, [], {}])
  await storage.sync()
  await storage.close()
  await expect(storage.sync()).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
})

test('[G-01] a storage that cannot be opened refuses every call with its reason', async () => {
  const storage = deferredStorage(Promise.reject(new ImpresarioError('INVALID_CONFIGURATION', 'No such server.')))
  storage.watch('turns', () => undefined)()
  await expect(storage.read('job', 'x')).rejects.toThrow('No such server.')
  await expect(storage.commit({})).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
  await storage.close()
})
