/**
 * Measures the product on this machine: one server process, one worker process, and this process
 * as the client; embedded storage with every acknowledged write on disk.
 *
 *   npm run bench                       all measures, three rounds, the median of each
 *   npm run bench -- --rounds 1         quicker
 *   npm run bench -- --storage memory   without the disk, to see what the disk costs
 *   npm run bench -- --storage redis://localhost
 *   npm run bench -- --only enqueue,drain,endToEnd
 */
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { cpus, release } from 'node:os'
import { parseArgs } from 'node:util'
import { openDirectory } from './backing.ts'
import { httpFloorMs, syncFloorMs } from './floor.ts'
import { cpuSeconds, foreignLoad, inFlight, memoryMiB, now, percentile, sleep } from './measure.ts'
import { CLIENT_TOKEN, startServer, startWorker } from './processes.ts'
import type { ServerProcess, WorkerProcess } from './processes.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    storage: { type: 'string', default: 'file' },
    jobs: { type: 'string', default: '20000' },
    width: { type: 'string', default: '100' },
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
})
const JOBS = Number(values.jobs)
const WIDTH = Number(values.width)
const DIAMONDS = Math.round(JOBS / 4)
const SINGLES = 300
/** An idle server gives memory back after some seconds. */
const REST_MS = 10_000

type Figures = Record<string, number>

interface Stage {
  readonly client: Client
  readonly server: ServerProcess
  worker: WorkerProcess | undefined
}

async function enqueue({ client }: Stage): Promise<Figures> {
  const begin = now()
  await inFlight(JOBS, WIDTH, (index) => client.start('noop', { index }))
  return { enqueuePerS: JOBS / ((now() - begin) / 1000) }
}

async function drain(stage: Stage): Promise<Figures> {
  stage.worker = await startWorker(stage.server.url, WIDTH, JOBS)
  const { at, first } = await stage.worker.next('done')
  return { drainPerS: JOBS / ((at - first) / 1000) }
}

function workerOf(stage: Stage): WorkerProcess {
  if (stage.worker === undefined) throw new Error('The worker has not been started.')
  return stage.worker
}

async function endToEnd(stage: Stage): Promise<Figures> {
  const worker = workerOf(stage)
  const pids = [stage.server.pid, worker.pid]
  worker.expect(JOBS)
  const cpuBefore = cpuSeconds(pids)
  const serverBefore = cpuSeconds([stage.server.pid])
  const selfBefore = process.cpuUsage()
  const begin = now()
  await inFlight(JOBS, WIDTH, (index) => stage.client.start('noop', { index }))
  const { at } = await worker.next('done')
  const self = process.cpuUsage(selfBefore)
  const selfSeconds = (self.user + self.system) / 1e6
  return {
    endToEndPerS: JOBS / ((at - begin) / 1000),
    cpuMsPerJob: ((cpuSeconds(pids) - cpuBefore + selfSeconds) * 1000) / JOBS,
    cpuServerMsPerJob: ((cpuSeconds([stage.server.pid]) - serverBefore) * 1000) / JOBS,
    cpuClientMsPerJob: (selfSeconds * 1000) / JOBS,
  }
}

async function latency(stage: Stage): Promise<Figures> {
  const worker = workerOf(stage)
  const starts: number[] = []
  const ends: number[] = []
  for (let index = 0; index < SINGLES + 20; index += 1) {
    const begin = now()
    const [job, started] = await Promise.all([stage.client.start('noop', { timed: true }), worker.next('started')])
    await job.wait()
    // The first ones warm up connections and code.
    if (index >= 20) {
      starts.push(started.at - begin)
      ends.push(now() - begin)
    }
    await sleep(10)
  }
  return {
    startP50Ms: percentile(starts, 50),
    startP99Ms: percentile(starts, 99),
    endP50Ms: percentile(ends, 50),
    endP99Ms: percentile(ends, 99),
  }
}

async function diamonds(stage: Stage): Promise<Figures> {
  const worker = workerOf(stage)
  worker.expect(DIAMONDS)
  const begin = now()
  await inFlight(DIAMONDS, WIDTH, (index) => stage.client.start('diamond', { index, quiet: true }))
  const { at } = await worker.next('done')
  return { diamondsPerS: DIAMONDS / ((at - begin) / 1000) }
}

async function memory(stage: Stage): Promise<Figures> {
  await sleep(1000)
  const figures = { serverMiB: memoryMiB(stage.server.pid), workerMiB: memoryMiB(workerOf(stage).pid) }
  await sleep(REST_MS)
  return { ...figures, serverRestedMiB: memoryMiB(stage.server.pid) }
}

async function floors(): Promise<Figures> {
  return { floorHttpMs: await httpFloorMs(), floorSyncMs: await syncFloorMs() }
}

/** All measures, or the named ones. Draining needs jobs that were enqueued before, and starts the worker. */
function measures(): readonly ((stage: Stage) => Promise<Figures>)[] {
  const all = [floors, enqueue, drain, endToEnd, latency, diamonds, memory]
  const wanted = values.only.split(',')
  const needs = wanted.some((name) => !['', 'floors', 'enqueue'].includes(name)) ? ['enqueue', 'drain'] : []
  return values.only === '' ? all : all.filter(({ name }) => wanted.includes(name) || needs.includes(name))
}

/** A complete address is used unchanged: that of a server that is already running. */
function addressOf(storage: string, directory: string): string {
  if (storage.includes('://')) return storage
  return storage === 'memory' ? 'memory:' : `file:${directory}`
}

async function round(): Promise<Figures> {
  const directory = openDirectory('file')
  const server = await startServer(addressOf(values.storage, directory.url))
  const stage: Stage = { server, client: createClient({ url: server.url, token: CLIENT_TOKEN }), worker: undefined }
  const pids = (): number[] => [server.pid, ...(stage.worker === undefined ? [] : [stage.worker.pid])]
  const figures: Figures = {}
  let foreignMax = 0
  try {
    for (const measure of measures()) {
      const [found, foreign] = await foreignLoad(pids, () => measure(stage))
      Object.assign(figures, found)
      foreignMax = Math.max(foreignMax, foreign)
    }
  } finally {
    await stage.worker?.stop()
    await server.stop()
    await directory.stop()
  }
  return { ...figures, foreignLoadPercentMax: foreignMax }
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value
}

function median(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {})
  return Object.fromEntries(
    names.map((name) => [
      name,
      percentile(
        rounds.map((one) => one[name] ?? Number.NaN),
        50,
      ),
    ]),
  )
}

const rounds: Figures[] = []
for (let index = 0; index < Number(values.rounds); index += 1) {
  const figures = await round()
  rounds.push(figures)
  if (!values.json) console.log(`round ${index + 1}: ${JSON.stringify(figures, rounded)}`)
}
const result = median(rounds)
if (values.json) {
  console.log(
    JSON.stringify({
      node: process.version,
      cores: cpus().length,
      kernel: release(),
      storage: values.storage,
      result,
      rounds,
    }),
  )
} else {
  console.log(
    `\nNode ${process.version}, ${cpus().length} cores, storage ${values.storage}, ${JOBS} jobs, ${WIDTH} in flight; median of ${values.rounds}`,
  )
  for (const [name, value] of Object.entries(result)) console.log(`${name.padEnd(24)} ${Number(value.toPrecision(4))}`)
}
