import { parentPort, workerData } from 'node:worker_threads'
import { runSeeds } from './run-seeds.ts'
import type { RunOptions } from './run-seeds.ts'

/** The request of the main thread. */
export type ThreadOrder = Pick<RunOptions, 'seeds' | 'bug'>

/** Type boundary: the main thread of this package wrote it. */
function orderOf(data: unknown): ThreadOrder {
  return data as ThreadOrder
}

const { seeds, bug } = orderOf(workerData)
const report = await runSeeds({ seeds, bug, onSeed: () => parentPort?.postMessage('seed') })
parentPort?.postMessage(report)
