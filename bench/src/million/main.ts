/**
 * Whether a long queue is a slow queue: how fast tasks are claimed and done with a thousand jobs waiting, and with a
 * million. Both queues are there at the same time, each in a storage and a process of its own, and are measured in rotation,
 * so that whatever the machine goes through meets both. Two measures: `work` is what a user sees, an orchestrator with a
 * worker; `by…` is the storage alone, claims and commits through its port with nothing between them.
 *
 *   npm run bench:million -- --storage file        or redis, postgres
 *   npm run bench:million -- --storage redis --jobs 100000 --seconds 4
 *
 * Ends with an error when work on the long queue has less than 80 % of the rate.
 */
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openDirectory, startPostgres, startRedis } from '../backing.ts'
import type { Backing } from '../backing.ts'
import { Subordinate } from '../channel.ts'
import { cpuSeconds, foreignLoad, memoryMiB, now, percentile, untilQuiet } from '../measure.ts'
import { startServer } from '../processes.ts'
import type { Slice } from './depth.ts'
import type { DepthOrders } from './orders.ts'

const { values } = parseArgs({
  options: {
    storage: { type: 'string', default: 'file' },
    jobs: { type: 'string', default: '1000000' },
    few: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '8' },
    patience: { type: 'string', default: '60' },
    json: { type: 'string', default: '' },
  },
})

const SHARE_MIN = 0.8
const SLICE_MS = 1_000
const LIMITS = [1, 20] as const
/** Filling a million on a slow machine. */
const FILL_MS = 3_600_000
const STUCK_MS = 120_000
const START_MS = 900_000
const DEPTH = fileURLToPath(new URL('depth-main.js', import.meta.url))

type Figures = Record<string, number>

/** One queue, its storage and its results. */
interface Side {
  readonly jobs: number
  readonly backing: Backing
  readonly process: Subordinate<DepthOrders>
  readonly figures: Figures
}

async function backingOf(): Promise<Backing> {
  if (values.storage === 'redis') return startRedis('always')
  if (values.storage === 'postgres') return startPostgres()
  if (values.storage === 'file') return openDirectory('million')
  throw new Error('--storage takes file, redis or postgres.')
}

async function openSide(jobs: number): Promise<Side> {
  const backing = await backingOf()
  const program = { node: process.execPath, file: DEPTH, args: [values.storage, backing.url] }
  return { jobs, backing, process: new Subordinate(program), figures: { jobs } }
}

async function fillSide({ jobs, process, figures }: Side): Promise<void> {
  const { ms } = await process.ask('fill', FILL_MS, jobs)
  figures['fillPerS'] = jobs / (ms / 1000)
  console.error(`${jobs} jobs wait (${Math.round(ms / 1000)} s)`)
}

function pidsOf(sides: readonly Side[]): readonly number[] {
  return sides.flatMap(({ backing, process }) => [...backing.pids(), process.pid])
}

/** With the CPU time of its process and its database. It includes the jobs that were added in between. */
type Taken = Slice & { readonly cpuS: number }

/** All queues in rotation, slice by slice. The first slice of each is a warm-up and is left out. */
async function inRotation<T>(
  sides: readonly Side[],
  slice: (side: Side) => Promise<T>,
): Promise<ReadonlyMap<Side, T[]>> {
  const found = new Map<Side, T[]>(sides.map((side) => [side, []]))
  const rounds = Math.max(1, Math.round((Number(values.seconds) * 1000) / SLICE_MS))
  for (let round = 0; round <= rounds; round += 1) {
    for (const [side, slices] of found) {
      const taken = await slice(side)
      if (round > 0) slices.push(taken)
    }
  }
  return found
}

function rateOf(slices: readonly { readonly done: number; readonly ms: number }[]): number {
  const ms = slices.reduce((sum, one) => sum + one.ms, 0)
  return doneIn(slices) / (ms / 1000)
}

function doneIn(slices: readonly { readonly done: number }[]): number {
  return slices.reduce((sum, one) => sum + one.done, 0)
}

async function claims(sides: readonly Side[], limit: number): Promise<void> {
  const found = await inRotation<Taken>(sides, async (side) => {
    const before = cpuSeconds(pidsOf([side]))
    const taken = await side.process.ask('slice', STUCK_MS, { limit, ms: SLICE_MS })
    return { ...taken, cpuS: cpuSeconds(pidsOf([side])) - before }
  })
  for (const [{ figures }, slices] of found) {
    const spans = slices.flatMap(({ claimMs }) => claimMs)
    figures[`by${limit}PerS`] = rateOf(slices)
    figures[`by${limit}CpuMs`] = (slices.reduce((sum, { cpuS }) => sum + cpuS, 0) * 1000) / doneIn(slices)
    figures[`by${limit}ClaimP50Ms`] = percentile(spans, 50)
    figures[`by${limit}ClaimP99Ms`] = percentile(spans, 99)
  }
}

/** The product on top of the storage. */
async function works(sides: readonly Side[]): Promise<void> {
  const found = await inRotation(sides, (side) => side.process.ask('work', STUCK_MS, SLICE_MS))
  for (const [{ figures }, slices] of found) figures['workPerS'] = rateOf(slices)
}

function sizes({ backing, process, figures }: Side): void {
  figures['processMiB'] = memoryMiB(process.pid)
  if (values.storage !== 'file') figures['databaseMiB'] = memoryMiB(...backing.pids())
  figures['diskMiB'] = diskMiB(backing)
}

function diskMiB({ directory }: Backing): number {
  let bytes = 0
  for (const file of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const found = statSync(join(directory, file), { throwIfNoEntry: false })
    if (found?.isFile() === true) bytes += found.size
  }
  return Math.round(bytes / 1_048_576)
}

/** How long the product takes from its start to its first response, with this many jobs in its file. */
async function startUp({ backing, process: holder, figures }: Side): Promise<void> {
  await holder.stop()
  if (values.storage !== 'file') return
  const begin = now()
  const server = await startServer(`file:${backing.url}`, process.execPath, START_MS)
  figures['startUpMs'] = now() - begin
  figures['serverMiB'] = memoryMiB(server.pid)
  await server.stop()
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value
}

function print(sides: readonly Side[]): void {
  for (const name of Object.keys(sides[0]?.figures ?? {})) {
    const cells = sides.map(({ figures }) => String(Number((figures[name] ?? Number.NaN).toPrecision(4))).padStart(12))
    console.log(`${name.padEnd(18)}${cells.join('')}`)
  }
}

/** The rate of the long queue as a share of the short one's. */
function shareOf([few, many]: readonly Side[], figure: string): number {
  return (many?.figures[figure] ?? 0) / (few?.figures[figure] ?? 1)
}

const sides = [await openSide(Number(values.few)), await openSide(Number(values.jobs))]
try {
  for (const side of sides) await fillSide(side)
  const pids = (): readonly number[] => pidsOf(sides)
  await untilQuiet(pids, { leftMs: Number(values.patience) * 1000 })
  const [, foreign] = await foreignLoad(pids, async () => {
    for (const limit of LIMITS) await claims(sides, limit)
    await works(sides)
  })
  for (const side of sides) sizes(side)
  for (const side of sides) await startUp(side)
  print(sides)
  console.log(`others used ${foreign} % of the machine meanwhile`)
  for (const limit of LIMITS) {
    console.log(`share of the storage's rate, ${limit} at a time: ${shareOf(sides, `by${limit}PerS`).toFixed(2)}`)
  }
  const share = shareOf(sides, 'workPerS')
  console.log(`share of the rate of work: ${share.toFixed(2)}`)
  const isKept = share >= SHARE_MIN
  console.log(isKept ? 'kept' : `NOT kept: it must be at least ${SHARE_MIN}`)
  if (!isKept) process.exitCode = 1
  const result = { storage: values.storage, share, foreignPercent: foreign, sides: sides.map(({ figures }) => figures) }
  if (values.json !== '') writeFileSync(values.json, `${JSON.stringify(result, rounded, 2)}\n`)
} finally {
  for (const side of sides) {
    await side.process.stop()
    await side.backing.stop()
  }
}
