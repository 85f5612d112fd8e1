/** A worker process for the kill tests: URL, token and id come from the environment. */
import { createWorker } from '@impresario/worker'

const worker = createWorker({ concurrency: 20, heartbeatMs: 1_000 })
worker.task('double', ({ value }) => ({ value: value * 2 }))
worker.task('part', ({ value, part }) => ({ value: value * part }))
await worker.start()
console.log('ready')
