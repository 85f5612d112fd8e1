/**
 * What a job costs on this storage: CPU of this process and of the server's, jobs per second, and how long it takes alone.
 *
 *   npm run cost -w @impresario/storage-postgres -- [--url postgres://…] [--jobs 5000] [--width 100]
 *
 * Without an address it starts a server of its own, and only then knows the server's CPU.
 */
import { parseArgs } from 'node:util'
import type { Storage } from '@impresario/core'
import { openPostgresStorage } from '../open.ts'
import { startLocalServer } from './local-server.ts'
import { percentile, runNoopJob } from './noop-job.ts'
import type { CallTimes } from './noop-job.ts'

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    jobs: { type: 'string', default: '5000' },
    width: { type: 'string', default: '100' },
    singles: { type: 'string', default: '300' },
  },
})

const RUN = Date.now().toString(36)
let begun = 0

async function run(storage: Storage, jobs: number, width: number): Promise<CallTimes & { readonly job: number[] }> {
  const times = { claim: [], commit: [], job: [] as number[] }
  const last = begun + jobs
  const lane = async (): Promise<void> => {
    while (begun < last) {
      const id = `${RUN} ${String(begun++).padStart(9, '0')}`
      const begin = performance.now()
      await runNoopJob(storage, id, times)
      times.job.push(performance.now() - begin)
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  return times
}

const server = values.url === undefined ? await startLocalServer() : undefined
const storage = await openPostgresStorage({ url: server?.url ?? values.url ?? '', namespace: 'measured' })
const line = (text: string): boolean => process.stdout.write(`${text}\n`)
const spread = (list: readonly number[]): string =>
  `p50 ${percentile(list, 50).toFixed(2)} ms, p99 ${percentile(list, 99).toFixed(2)} ms`
try {
  for (const width of [Number(values.width), 1]) {
    const jobs = width === 1 ? Number(values.singles) : Number(values.jobs)
    // In a running program, connections, code and the server's plans are warm.
    await run(storage, Math.min(500, jobs), width)
    const [own, theirs, begin] = [process.cpuUsage(), server?.cpuSeconds() ?? Number.NaN, performance.now()]
    const times = await run(storage, jobs, width)
    const seconds = (performance.now() - begin) / 1_000
    const used = process.cpuUsage(own)
    const ownMs = (used.user + used.system) / 1_000 / jobs
    const theirMs = (((server?.cpuSeconds() ?? Number.NaN) - theirs) * 1_000) / jobs
    line(
      `${width} in flight: ${Math.round(jobs / seconds)} jobs/s; CPU per job ${ownMs.toFixed(3)} ms here, ${theirMs.toFixed(3)} ms server`,
    )
    line(`  job ${spread(times.job)}; claim ${spread(times.claim)}; commit ${spread(times.commit)}`)
  }
} finally {
  await storage.close()
  await server?.stop()
}
