/** Holds one queue: a separate process for each length, so that neither is affected by the other's memory. */
import type { Storage } from '@impresario/core'
import { openEmbeddedStorage } from '@impresario/storage-embedded'
import { openPostgresStorage } from '@impresario/storage-postgres'
import { openRedisStorage } from '@impresario/storage-redis'
import { obeyParent } from '../channel.ts'
import { now } from '../measure.ts'
import { fill, slice } from './depth.ts'
import type { DepthOrders } from './orders.ts'
import { Works } from './work.ts'
import { recordedWorkload } from './workload.ts'

const [kind = 'file', url = ''] = process.argv.slice(2)

async function open(): Promise<Storage> {
  if (kind === 'redis') return openRedisStorage({ url })
  if (kind === 'postgres') return openPostgresStorage({ url })
  return openEmbeddedStorage({ directory: url })
}

const workload = await recordedWorkload()
const storage = await open()
const works = new Works(storage, workload)

obeyParent<DepthOrders>({
  fill: async (count) => {
    const begin = now()
    await fill(storage, workload, count)
    return { ms: now() - begin }
  },
  work: (ms) => works.slice(ms),
  slice: (pace) => slice(storage, workload, pace),
  close: () => storage.close(),
})
