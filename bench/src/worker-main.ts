/** The worker process of the benchmark: does nothing, and reports the time to the driver. */
import { createWorker } from '@impresario/worker'
import { now } from './measure.ts'

interface Count {
  done: number
  want: number
  first: number
}

// Known from the start: the first tasks arrive before any message could.
const count: Count = { done: 0, want: Number(process.env['BENCH_EXPECT'] ?? 0), first: 0 }

const worker = createWorker({
  url: process.env['BENCH_URL'] ?? '',
  token: process.env['BENCH_TOKEN'] ?? '',
  id: `bench-${process.pid}`,
  concurrency: Number(process.env['BENCH_CONCURRENCY'] ?? 100),
})

worker.task('noop', (params) => {
  if (count.first === 0) count.first = now()
  if (params['timed'] === true) process.send?.({ type: 'started', at: now() })
  else if (params['quiet'] !== true || params['last'] === true) tally()
  return {}
})

function tally(): void {
  count.done += 1
  if (count.done === count.want) process.send?.({ type: 'done', at: now(), first: count.first })
}

process.on('message', (message: { type: string; count?: number }) => {
  if (message.type === 'expect') Object.assign(count, { done: 0, want: message.count ?? 0, first: 0 })
  if (message.type === 'exit') void worker.stop().then(() => process.exit(0))
})
process.on('disconnect', () => process.exit(0))

await worker.start()
process.send?.({ type: 'ready' })
