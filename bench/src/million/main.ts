/**
 * Whether a long queue is a slow queue: how fast tasks are claimed and settled with a thousand jobs waiting, and with a
 * million. Works on the storage's port alone, with jobs as the engine makes them.
 *
 *   npm run bench:million -- --storage file        or redis, postgres
 *   npm run bench:million -- --storage redis --jobs 100000 --seconds 2
 *
 * Ends with an error when the long queue has less than 80 % of the rate.
 */
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Storage } from '@impresario/core'
import { openEmbeddedStorage } from '@impresario/storage-embedded'
import { openPostgresStorage } from '@impresario/storage-postgres'
import { openRedisStorage } from '@impresario/storage-redis'
import { openDirectory, startPostgres, startRedis } from '../backing.ts'
import type { Backing } from '../backing.ts'
import { foreignLoad, memoryMiB, now, untilQuiet } from '../measure.ts'
import { startServer } from '../processes.ts'
import { claimRates, fill } from './depth.ts'
import type { Rates } from './depth.ts'
import { recordedWorkload } from './workload.ts'

const { values } = parseArgs({
  options: {
    storage: { type: 'string', default: 'file' },
    jobs: { type: 'string', default: '1000000' },
    few: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '4' },
    patience: { type: 'string', default: '30' },
    json: { type: 'string', default: '' },
  },
})

const SHARE_MIN = 0.8

interface Depth extends Rates {
  readonly jobs: number
  readonly fillPerS: number
  readonly memoryMiB: number
  readonly diskMiB: number
  /** The share of the machine that others used meanwhile. */
  readonly foreignPercent: number
  /** From the start of the program to its first answer, on the embedded file. */
  readonly startUpMs?: number
  readonly serverMiB?: number
}

async function backingOf(): Promise<Backing> {
  if (values.storage === 'redis') return startRedis('always')
  if (values.storage === 'postgres') return startPostgres()
  if (values.storage === 'file') return openDirectory('million')
  throw new Error('--storage takes file, redis or postgres.')
}

async function open({ url }: Backing): Promise<Storage> {
  if (values.storage === 'redis') return openRedisStorage({ url })
  if (values.storage === 'postgres') return openPostgresStorage({ url })
  return openEmbeddedStorage({ directory: url })
}

async function startUp({ url }: Backing): Promise<Pick<Depth, 'startUpMs' | 'serverMiB'>> {
  if (values.storage !== 'file') return {}
  const begin = now()
  const server = await startServer(`file:${url}`)
  const figures = { startUpMs: now() - begin, serverMiB: memoryMiB(server.pid) }
  await server.stop()
  return figures
}

function diskMiB({ directory }: Backing): number {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  let bytes = 0
  for (const file of files) {
    const found = statSync(join(directory, file), { throwIfNoEntry: false })
    if (found?.isFile() === true) bytes += found.size
  }
  return Math.round(bytes / 1_048_576)
}

async function measure(backing: Backing, depths: readonly number[]): Promise<readonly Depth[]> {
  const workload = await recordedWorkload()
  const found: Depth[] = []
  let waiting = 0
  for (const jobs of depths) {
    const storage = await open(backing)
    const begin = now()
    await fill(storage, workload, jobs - waiting)
    const fillPerS = (jobs - waiting) / ((now() - begin) / 1000)
    waiting = jobs
    console.error(`${jobs} jobs wait, ${Math.round(fillPerS)} came per second`)
    await untilQuiet(() => backing.pids(), { leftMs: Number(values.patience) * 1000 })
    const [rates, foreignPercent] = await foreignLoad(
      () => backing.pids(),
      () => claimRates(storage, workload, Number(values.seconds) * 1000),
    )
    const memory = memoryMiB(process.pid, ...backing.pids())
    await storage.close()
    const sizes = { memoryMiB: memory, diskMiB: diskMiB(backing) }
    found.push({ jobs, fillPerS, ...rates, ...sizes, foreignPercent, ...(await startUp(backing)) })
    console.error(JSON.stringify(found.at(-1), rounded))
  }
  return found
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value
}

function print(depths: readonly Depth[]): void {
  const names = [...new Set(depths.flatMap((depth) => Object.keys(depth)))]
  const cell = (depth: Depth, name: string): string => {
    const value = new Map<string, number>(Object.entries(depth)).get(name)
    return value === undefined ? '–' : String(Number(value.toPrecision(4)))
  }
  for (const name of names) {
    console.log(name.padEnd(18), depths.map((depth) => cell(depth, name).padStart(12)).join(''))
  }
}

const backing = await backingOf()
try {
  const depths = await measure(backing, [Number(values.few), Number(values.jobs)])
  print(depths)
  const [few, many] = depths
  if (few !== undefined && many !== undefined) {
    const shares = { one: many.onePerS / few.onePerS, twenty: many.twentyPerS / few.twentyPerS }
    console.log(`\nshare of the rate  ${shares.one.toFixed(2)} one at a time, ${shares.twenty.toFixed(2)} by twenties`)
    const isKept = Math.min(shares.one, shares.twenty) >= SHARE_MIN
    console.log(isKept ? 'kept' : `NOT kept: it must be at least ${SHARE_MIN}`)
    if (!isKept) process.exitCode = 1
    if (values.json !== '') {
      writeFileSync(values.json, `${JSON.stringify({ storage: values.storage, depths, shares }, rounded, 2)}\n`)
    }
  }
} finally {
  await backing.stop()
}
