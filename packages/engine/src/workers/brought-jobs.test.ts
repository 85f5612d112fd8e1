import type { Job, Lease, Storage } from '@impresario/core'
import { expect, onTestFinished, test } from 'vitest'
import { guarded, oneTask, settled, Stage } from '../stage.fixture.ts'

type Brought = Lease['job']

/** Two instances; the claims of the second bring what `bring` makes of the stored job. Its reads of jobs are counted. */
async function twoInstances(
  bring: (stored: Brought) => Brought,
  { isShared = true } = {},
): Promise<{ readonly one: Stage; readonly two: Stage; readonly reads: () => number }> {
  const settings = { isShared }
  const one = new Stage([oneTask()], { settings })
  let reads = 0
  const plain = one.storage
  const door = guarded(plain, () => undefined)
  const storage: Storage = {
    ...door,
    read: (kind, id) => {
      if (kind === 'job') reads += 1
      return door.read(kind, id)
    },
    claim: async (queue, options) => {
      // What the storage itself would bring is not asked for.
      const { brings, ...plainly } = options
      const claimed = await door.claim(queue, plainly)
      if (brings === undefined) return claimed
      const leases = claimed.leases.map(async (lease): Promise<Lease> => {
        const job = bring(await plain.read('job', lease.id.split('.')[0] ?? ''))
        return job === undefined ? lease : { ...lease, job }
      })
      return { ...claimed, leases: await Promise.all(leases) }
    },
  }
  const two = new Stage([oneTask()], { settings, clock: one.clock, storage: () => storage })
  for (let ids = 0; ids < 1_000; ids += 1) two.random.id()
  for (const stage of [one, two]) {
    await stage.engine.start()
    onTestFinished(() => stage.engine.stop())
    await settled()
  }
  return { one, two, reads: () => reads }
}

/** A job that one instance creates and a worker of the other does. Gives how often the other read it before the result. */
async function carriedOver(
  bring: (stored: Brought) => Brought,
): Promise<{ readonly status: string; readonly reads: number }> {
  const { one, two, reads } = await twoInstances(bring)
  const worker = await two.worker('w')
  await settled()
  const jobId = await one.create('one')
  await settled()
  const { taskId } = await worker.takeOne()
  const before = reads()
  expect(await worker.report(taskId)).toMatchObject({ type: 'accepted' })
  await settled()
  return { status: await one.statusOf(jobId), reads: before }
}

test('[I-01] an instance does not read the job of a task whose claim brought it', async () => {
  expect(await carriedOver((stored) => stored)).toEqual({ status: 'finished', reads: 0 })
})

test('[I-01] a job that a claim did not bring is read', async () => {
  expect(await carriedOver(() => undefined)).toEqual({ status: 'finished', reads: 1 })
})

test('[I-01] a job that a claim brought as it was before the task is read', async () => {
  const older = (stored: Brought): Brought => {
    if (stored === undefined) return undefined
    const value: Job = { ...stored.value, visit: stored.value.visit - 1, branches: {} }
    return { value, version: stored.version - 1 }
  }
  expect(await carriedOver(older)).toEqual({ status: 'finished', reads: 1 })
})

test('[I-01] an instance that does not remember the jobs of its tasks has them brought by its next claims', async () => {
  // Neither knows of the other, as after a restart.
  const { one, two, reads } = await twoInstances((stored) => stored, { isShared: false })
  for (let jobs = 0; jobs < 4; jobs += 1) await one.create('one')
  await settled()
  const worker = await two.worker('w', { concurrencyMax: 4 })
  await settled()
  const counts: number[] = []
  for (let tasks = 0; tasks < 4; tasks += 1) {
    await worker.takeOne()
    counts.push(reads())
  }
  expect(counts).toEqual([1, 1, 1, 1])
})
