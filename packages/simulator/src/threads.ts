import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { BugName } from './bugs/index.ts'
import type { SeedRange } from './command-line.ts'
import { mergeReports, runSeeds } from './run-seeds.ts'
import type { RunReport } from './run-seeds.ts'
import type { ThreadOrder } from './seeds-thread.ts'

/** Below this number a second thread takes longer to load than it saves. */
const SEEDS_PER_THREAD_MIN = 50

export interface SpreadOptions {
  readonly ranges: readonly SeedRange[]
  readonly bug: BugName | undefined
  readonly onSeed: () => void
}

/** Runs the seeds on all cores. Worlds are independent, so the result does not depend on how they are distributed. */
export async function spreadSeeds({ ranges, bug, onSeed }: SpreadOptions): Promise<RunReport> {
  const seeds = ranges.flatMap(({ from, count }) => Array.from({ length: count }, (_, index) => from + index))
  const threads = Math.min(availableParallelism(), Math.floor(seeds.length / SEEDS_PER_THREAD_MIN))
  if (threads <= 1) return runSeeds({ seeds, bug, onSeed })
  const shares = Array.from({ length: threads }, (_, thread) =>
    seeds.filter((_seed, index) => index % threads === thread),
  )
  return mergeReports(await Promise.all(shares.map((share) => inThread({ seeds: share, bug }, onSeed))))
}

function inThread(order: ThreadOrder, onSeed: () => void): Promise<RunReport> {
  return new Promise((resolve, reject) => {
    // The built file is beside this one and has the same extension.
    const file = new URL(import.meta.url.endsWith('.ts') ? 'seeds-thread.ts' : 'seeds-thread.js', import.meta.url)
    const worker = new Worker(file, { workerData: order })
    worker.on('error', reject)
    worker.on('message', (message: 'seed' | RunReport) => {
      if (message === 'seed') onSeed()
      else resolve(message)
    })
  })
}
