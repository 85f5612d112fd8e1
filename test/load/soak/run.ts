import { openEmbeddedStorage } from '@impresario/storage-embedded'
import { setTimeout as pause } from 'node:timers/promises'
import { added, WireLine } from '../wire-line.ts'
import type { Mishaps } from '../wire-line.ts'
import { Feeders } from './feeders.ts'
import type { FeederTotals } from './feeders.ts'
import { Ledger } from './ledger.ts'
import { Nuisances } from './nuisances.ts'
import { CLIENT_TOKEN, ServerUnderTest, WORKER_TOKEN } from './server-under-test.ts'
import { WorkerCrowd } from './worker-crowd.ts'
import type { CrowdTotals } from './worker-crowd.ts'

export interface SoakOptions {
  readonly seconds: number
  readonly heapMb: number
  readonly kills: number
  /** Whether it waits until everything has expired, and then checks memory and file. */
  readonly isComplete: boolean
  readonly say: (text: string) => void
}

export interface SoakReport {
  readonly acknowledged: number
  readonly right: number
  readonly jobs: FeederTotals
  readonly tasks: CrowdTotals
  readonly nuisances: number
  readonly kills: number
  readonly rssMb: { readonly atFirst: number; readonly most: number; readonly atLast: number }
  readonly fileMb: { readonly most: number; readonly atLast: number }
  /** Errors that a retry resolved. */
  readonly cured: Mishaps
  /** Empty if all is well. */
  readonly complaints: readonly string[]
}

/** How long all jobs may take to end after the last one was started. */
const REST_MS = 180_000
const GOOD = 24
const BAD = 6
/** The heap may be full, plus the code, two threads with their caches, and the data being read and written. */
const BESIDE_HEAP_MB = 350
/** V8 keeps some of the memory that it had. */
const GROWTH_MB = 100
const KEPT_FILE_MB = 32

/** All kinds of load at once on one server, and then none. */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { seconds, isComplete, heapMb } = options
  const retentionS = isComplete ? Math.max(90, Math.min(200, seconds / 3)) : 0
  const server = await ServerUnderTest.start({ heapMb, retentionS })
  const cast = castFor(server, options.say)
  try {
    return await play(server, cast, options, retentionS)
  } finally {
    for (const line of cast.lines) line.close()
    await server.kill()
    server.remove()
  }
}

interface Cast {
  readonly lines: readonly WireLine[]
  readonly ledger: Ledger
  readonly feeders: Feeders
  readonly crowd: WorkerCrowd
  readonly nuisances: Nuisances
}

function castFor(server: ServerUnderTest, say: SoakOptions['say']): Cast {
  const clientLine = new WireLine(server.url, undefined, { 'x-client-token': CLIENT_TOKEN })
  const workerLine = new WireLine(server.url, undefined, { 'x-worker-token': WORKER_TOKEN })
  const lines = [clientLine, workerLine]
  const ledger = new Ledger(clientLine)
  const feeders = new Feeders(server, clientLine, ledger)
  const crowd = new WorkerCrowd(server, workerLine, ledger)
  const nuisances = new Nuisances(server)
  server.onDeath = () => {
    say('the server ended by itself')
    for (const part of [feeders, crowd, nuisances]) part.isOn = false
    for (const line of lines) line.isClosing = true
  }
  return { lines, ledger, feeders, crowd, nuisances }
}

async function play(
  server: ServerUnderTest,
  cast: Cast,
  { seconds, heapMb, kills, isComplete, say }: SoakOptions,
  retentionS: number,
): Promise<SoakReport> {
  const { lines, ledger, feeders, crowd, nuisances } = cast
  const working = crowd.run(GOOD, BAD)
  const atFirst = await warm(server)
  say(`the server began with ${atFirst} MB`)
  const playing = Promise.all([feeders.run(), nuisances.run()])
  let fileMbMax = 0
  const watching = setInterval(() => {
    fileMbMax = Math.max(fileMbMax, server.fileMb)
    const { rssMb } = server
    say(`${ledger.acknowledged} acknowledged, ${ledger.right} right, ${ledger.open.size} open; ${rssMb} MB`)
  }, 10_000)
  await torment(server, seconds * 1_000, kills, say)
  feeders.isOn = false
  nuisances.isOn = false
  await playing
  await untilDone(ledger, server)
  clearInterval(watching)
  crowd.isOn = false
  for (const line of lines) line.isClosing = true
  await working
  if (isComplete) say(`all ended; waiting ${retentionS + 30} s for what is kept to expire`)
  const atLast = await rest(server, isComplete ? retentionS + 30 : 1)
  const rssMb = { atFirst, most: server.rssMbMax, atLast }
  const fileMb = { most: fileMbMax, atLast: server.fileMb }
  const excesses = [
    ...(rssMb.most > heapMb + BESIDE_HEAP_MB ? [`The server took ${rssMb.most} MB.`] : []),
    ...(isComplete && atLast > atFirst + GROWTH_MB ? [`It began with ${atFirst} MB and kept ${atLast} MB.`] : []),
    ...(isComplete && fileMb.atLast > KEPT_FILE_MB ? [`Its file kept ${fileMb.atLast} MB of what has expired.`] : []),
  ]
  return {
    acknowledged: ledger.acknowledged,
    right: ledger.right,
    jobs: feeders.totals,
    tasks: crowd.totals,
    nuisances: nuisances.connections,
    kills,
    rssMb,
    fileMb,
    cured: added(...lines.map(({ cured }) => cured)),
    complaints: [...(await complaintsOf(server, cast)), ...excesses],
  }
}

async function complaintsOf(server: ServerUnderTest, cast: Cast): Promise<readonly string[]> {
  const { lines, ledger, feeders, crowd } = cast
  const incurable = added(...lines.map((line) => line.incurable))
  return [
    ...server.deaths.map((output) => `The server ended by itself: ${output}`),
    ...(await inspected(server)),
    ...feeders.complaints,
    ...crowd.complaints,
    ...ledger.wrong,
    ...[...ledger.open.keys()].map((id) => `Job ${id} was acknowledged and has not ended.`),
    ...Object.entries(incurable).map(([kind, times]) => `${kind} (${times} times)`),
  ]
}

/** The memory of a server that has done some work. */
async function warm(server: ServerUnderTest): Promise<number> {
  const headers = { 'x-client-token': CLIENT_TOKEN, 'content-type': 'application/json' }
  const body = JSON.stringify({ blueprint: 'soak', initial_data: { number: 0 } })
  for (let job = 0; job < 300; job += 1) {
    await (await fetch(`${server.url}/api/v1/jobs`, { method: 'POST', headers, body })).text()
  }
  return rest(server, 5)
}

/** The minimum memory while there are no requests. */
async function rest(server: ServerUnderTest, seconds: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let second = 0; second < seconds && server.deaths.length === 0; second += 1) {
    await pause(1_000)
    least = Math.min(least, server.rssMb)
  }
  return least
}

/** Kills in the middle third, so that the last process has run long enough to be judged. */
async function torment(server: ServerUnderTest, ms: number, kills: number, say: SoakOptions['say']): Promise<void> {
  await passed(server, ms / 3)
  for (let kill = 0; kill < kills && server.deaths.length === 0; kill += 1) {
    await server.kill()
    say('the server was killed')
    await pause(500 + Math.random() * 1_000)
    await server.begin()
    say('it is back')
    await passed(server, ms / 3 / kills)
  }
  await passed(server, ms / 3)
}

/** Ends early if the server did. */
async function passed(server: ServerUnderTest, ms: number): Promise<void> {
  const ends = performance.now() + ms
  while (performance.now() < ends && server.deaths.length === 0) await pause(250)
}

async function untilDone(ledger: Ledger, server: ServerUnderTest): Promise<void> {
  const ends = performance.now() + REST_MS
  while (ledger.open.size > 0 && performance.now() < ends && server.deaths.length === 0) await pause(250)
}

/** Stops the server as an operator does, and checks what it leaves behind. */
async function inspected(server: ServerUnderTest): Promise<readonly string[]> {
  const isGone = server.deaths.length > 0
  const code = await server.stop()
  if (isGone) return []
  const problems = code === 0 ? [] : [`The server stopped with ${String(code)}: ${server.output.slice(-500)}`]
  const storage = openEmbeddedStorage({ directory: server.directory })
  try {
    return [...problems, ...storage.integrityCheck()]
  } finally {
    await storage.close()
  }
}
