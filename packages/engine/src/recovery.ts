import { taskId } from '@impresario/core'
import type { DeliveryRef, Job, Storage } from '@impresario/core'

const WAITING: readonly string[] = ['waiting_for_worker', 'waiting_for_parallel']
const PAGE = 500

/**
 * The tasks that somebody outside holds now, as the storage knows it. One pass over the jobs that wait for workers, once
 * after a start. Workers that name their tasks in every heartbeat would tell by themselves what they hold; the oldest do
 * not, and without this their leases would end while they work.
 */
export async function* heldTasks(
  storage: Storage,
): AsyncGenerator<{ readonly holder: string; readonly ref: DeliveryRef }> {
  let before: string | undefined
  for (;;) {
    const query = { statuses: WAITING, limit: PAGE, ...(before === undefined ? {} : { before }) }
    const page = await storage.list('job', query)
    const tries = page.flatMap(({ value }) => openTries(value))
    const views = await storage.peek(
      'tasks',
      tries.map(({ jobId, visit, branch }) => taskId(jobId, visit, branch)),
    )
    for (const [index, one] of tries.entries()) {
      const lease = views[index]?.lease
      if (lease?.holder !== undefined) yield { holder: lease.holder, ref: { ...one, token: lease.token } }
    }
    if (page.length < PAGE) return
    before = page.at(-1)?.id
  }
}

function openTries(job: Job): readonly Omit<DeliveryRef, 'token'>[] {
  const { id: jobId, visit } = job
  return Object.entries(job.branches)
    .filter(([, { call, outcome }]) => call.kind === 'task' && outcome === undefined)
    .map(([branch, { attempt }]) => ({ jobId, visit, branch, attempt }))
}
