import { taskId } from '@impresario/core'
import type { DeliveryRef, Job, Log, Storage } from '@impresario/core'

const WAITING: readonly string[] = ['waiting_for_worker', 'waiting_for_parallel']
const PAGE = 500

/** So many jobs are looked at before the start is over: most systems have fewer that wait. */
const PAGES_AWAITED = 20

/** A task in somebody's hands. */
export interface Held {
  readonly holder: string
  readonly ref: DeliveryRef
}

export interface RecoveryOptions {
  readonly storage: Storage
  readonly log: Log
  readonly onHeld: (held: Held) => void
}

/**
 * Learns after a start what tasks somebody outside holds: one pass over the jobs that wait for workers. Workers that name
 * their tasks in every heartbeat would tell by themselves what they hold; the oldest do not, and without this their leases
 * would end while they work. With a long queue the rest of the pass goes on beside the work.
 */
export class Recovery {
  readonly #options: RecoveryOptions
  #run: { isWanted: boolean; done: Promise<void> } | undefined

  constructor(options: RecoveryOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    await this.stop()
    const pages = heldTasks(this.#options.storage)
    for (let count = 0; count < PAGES_AWAITED; count += 1) {
      const page = await pages.next()
      if (page.done === true) return
      this.#tell(page.value)
    }
    const run = { isWanted: true, done: Promise.resolve() }
    run.done = this.#rest(pages, run)
    this.#run = run
  }

  async stop(): Promise<void> {
    const run = this.#run
    if (run === undefined) return
    run.isWanted = false
    await run.done
    this.#run = undefined
  }

  async #rest(pages: AsyncGenerator<readonly Held[]>, run: { readonly isWanted: boolean }): Promise<void> {
    try {
      for await (const page of pages) {
        if (!run.isWanted) return
        this.#tell(page)
      }
    } catch (error) {
      this.#options.log.warn('not all tasks in the hands of workers could be found', { error: String(error) })
    }
  }

  #tell(page: readonly Held[]): void {
    for (const held of page) this.#options.onHeld(held)
  }
}

async function* heldTasks(storage: Storage): AsyncGenerator<readonly Held[], undefined> {
  let before: string | undefined
  for (;;) {
    const query = { statuses: WAITING, limit: PAGE, ...(before === undefined ? {} : { before }) }
    const page = await storage.list('job', query)
    const tries = page.flatMap(({ value }) => openTries(value))
    const views = await storage.peek(
      'tasks',
      tries.map(({ jobId, visit, branch }) => taskId(jobId, visit, branch)),
    )
    yield tries.flatMap((one, index) => {
      const lease = views[index]?.lease
      return lease?.holder === undefined ? [] : [{ holder: lease.holder, ref: { ...one, token: lease.token } }]
    })
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
