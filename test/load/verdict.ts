import type { Job, Storage } from '@impresario/core'

/** The results of the jobs, compared with the replies that their client got. */
export interface Verdict {
  readonly acknowledged: number
  readonly stored: number
  /** Acknowledged, but missing. */
  readonly lost: readonly string[]
  /** Stored although it was never requested, or stored twice. */
  readonly unexpected: readonly string[]
  readonly endedTwice: readonly string[]
  readonly unfinished: readonly string[]
  /** Finished with a wrong sum. */
  readonly wrong: readonly string[]
  /** From its creation to its end, by the storage's clock. */
  readonly lifeMs: readonly number[]
}

const PAGE = 500

/** Reads the storage itself: what an instance reports about it would be part of what is tested. */
export async function judge(
  storage: Storage,
  acknowledged: ReadonlyMap<number, string>,
  attempted: number,
): Promise<Verdict> {
  const jobs = new Map<string, Job>()
  for await (const job of allJobs(storage)) jobs.set(job.id, job)
  const byNumber = new Map<number, string[]>()
  for (const { id, initialData } of jobs.values()) {
    const number = Number(initialData['value'])
    byNumber.set(number, [...(byNumber.get(number) ?? []), id])
  }
  const found = [...jobs.values()]
  const unexpected = [...byNumber].flatMap(([number, ids]) => {
    const isAskedFor = number >= 0 && number < attempted
    // A job whose reply was lost was requested too; a second one for the same request was not.
    const own = acknowledged.get(number) ?? ids[0]
    return isAskedFor ? ids.filter((id) => id !== own) : ids
  })
  const finished = found.filter(({ status }) => status === 'finished')
  return {
    acknowledged: acknowledged.size,
    stored: jobs.size,
    lost: [...acknowledged.values()].filter((id) => !jobs.has(id)),
    unexpected,
    endedTwice: idsOf(found.filter((job) => endings(job) > 1)),
    unfinished: idsOf(found.filter(({ status }) => status !== 'finished')),
    wrong: idsOf(finished.filter((job) => !isRight(job))),
    lifeMs: finished.map(({ createdAt, endedAt = Number.NaN }) => endedAt - createdAt),
  }
}

async function* allJobs(storage: Storage): AsyncGenerator<Job> {
  let before: string | undefined
  for (;;) {
    const page = await storage.list('job', before === undefined ? { limit: PAGE } : { limit: PAGE, before })
    for (const { value } of page) yield value
    if (page.length < PAGE) return
    before = page.at(-1)?.id
  }
}

function idsOf(jobs: readonly Job[]): readonly string[] {
  return jobs.map(({ id }) => id)
}

function endings({ trail }: Job): number {
  return trail.filter(({ event }) => event === 'job_finished').length
}

/** Twice the number; for four states, the sum of three parts of it: one, two and three times as much. */
function isRight(job: Job): boolean {
  const { value, sum, parts } = job.stateHistory
  const number = Number(job.initialData['value'])
  const isSo = job.blueprint === 'one_state' ? value === number * 2 : sum === number * 12 && parts === 3
  return isSo && endings(job) === 1
}
