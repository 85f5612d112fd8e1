/**
 * Three instances behind nginx, thousands of long-polling workers, a steady load; one instance is killed, another one is
 * restarted. Nothing may be lost, and nobody may see an error that a plain repetition does not cure.
 *
 *   npm run cluster                                              five minutes, 2,000 workers, 200 jobs a second, Redis
 *   npm run cluster -- --storage postgres
 *   npm run cluster -- --blueprint four_states                   four tasks a job, three of them side by side
 *   npm run cluster -- --minutes 0.3 --workers 200 --rate 20     to see whether it runs at all
 *   npm run cluster -- --calm                                    without faults
 */
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { RUN_DIRECTORY } from '../servers/run-directory.ts'
import type { FeederReport } from './feeder.ts'
import { ProcessWatch } from './process-figures.ts'
import type { Figures } from './process-figures.ts'
import { CLIENT_TOKEN, Stage, untilReady, WORKER_TOKEN } from './stage.ts'
import type { StorageName } from './stage.ts'
import type { SwarmReport } from './swarm.ts'
import { judge } from './verdict.ts'
import type { Verdict } from './verdict.ts'
import { added } from './wire-line.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    workers: { type: 'string', default: '2000' },
    rate: { type: 'string', default: '200' },
    instances: { type: 'string', default: '3' },
    swarms: { type: 'string', default: '2' },
    storage: { type: 'string', default: 'redis' },
    blueprint: { type: 'string', default: 'one_state' },
    calm: { type: 'boolean', default: false },
  },
})
const SECONDS = Number(values.minutes) * 60
const RATE = Number(values.rate)
const SWARMS = Number(values.swarms)
const STORAGE: StorageName = values.storage === 'postgres' ? 'postgres' : 'redis'
/** How long all jobs may take to end after the last one was started. */
const REST_MS = 120_000
const DEAD_MS = 5_000

/** The role of each process, by its command line. */
const LABELS = [
  [/main\.js start/, 'instances'],
  [/swarm\.ts/, 'workers'],
  [/feeder\.ts/, 'client'],
  [/^nginx/, 'nginx'],
  [/redis-server/, 'redis'],
  [/postgres/, 'postgres'],
] as const

function program(name: string, env: Readonly<Record<string, string>>): ChildProcess {
  const path = fileURLToPath(new URL(name, import.meta.url))
  const child = fork(path, { execArgv: ['--import', 'tsx'], env: { ...process.env, ...env } })
  child.on('message', (message: { readonly type: string; readonly text?: string }) => {
    if (message.type === 'progress') say(message.text ?? '')
  })
  return child
}

/** Type boundary: messages of our own programs. */
async function said<T extends { readonly type: string }>(child: ChildProcess, type: T['type']): Promise<T> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`A part of the test ended with ${String(code)} before it had reported.`)
  })
  const heard = new Promise<T>((resolve) => {
    child.on('message', (message: T) => {
      if (message.type === type) resolve(message)
    })
  })
  try {
    return await Promise.race([heard, ended])
  } finally {
    ended.catch(() => undefined)
  }
}

function say(text: string): void {
  console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`)
}

/** One instance is killed and restarted after a while; later another is stopped as for an upgrade, and restarted. */
async function cause(stage: Stage): Promise<readonly string[]> {
  const [, first, second] = stage.instances
  const complaints: string[] = []
  if (values.calm || first === undefined || second === undefined) return complaints
  await pause(SECONDS * 250)
  await first.process.kill()
  say(`${first.name} killed`)
  await pause(Math.min(DEAD_MS, SECONDS * 100))
  first.process.start()
  await untilReady(first)
  say(`${first.name} is back`)
  await pause(SECONDS * 250)
  const began = performance.now()
  const code = await second.process.stop()
  say(`${second.name} stopped with ${String(code)} after ${Math.round(performance.now() - began)} ms`)
  if (code !== 0) complaints.push(`${second.name} did not stop well: ${String(code)}`)
  second.process.start()
  await untilReady(second)
  say(`${second.name} is back`)
  return complaints
}

interface Played {
  readonly feeder: FeederReport
  readonly swarms: readonly SwarmReport[]
  readonly figures: Readonly<Record<string, Figures>>
  readonly complaints: readonly string[]
}

async function play(stage: Stage): Promise<Played> {
  const { url, ca } = stage.nginx
  const began = performance.now()
  const swarms = Array.from({ length: SWARMS }, (_, index) => {
    const size = String(Math.ceil(Number(values.workers) / SWARMS))
    const env = {
      SWARM_URL: url,
      SWARM_CA: ca,
      SWARM_TOKEN: WORKER_TOKEN,
      SWARM_NAME: `swarm-${index}`,
      SWARM_SIZE: size,
    }
    return program('swarm.ts', env)
  })
  await Promise.all(swarms.map((swarm) => said(swarm, 'ready')))
  say(`${values.workers} workers registered in ${Math.round(performance.now() - began)} ms`)
  const watch = new ProcessWatch(LABELS)
  watch.start()
  const env = { FEEDER_URL: url, FEEDER_CA: ca, FEEDER_TOKEN: CLIENT_TOKEN, FEEDER_RATE: String(RATE) }
  const child = program('feeder.ts', { ...env, FEEDER_SECONDS: String(SECONDS), FEEDER_BLUEPRINT: values.blueprint })
  const limit = setTimeout(() => child.send('end'), SECONDS * 1_000 + REST_MS)
  const feeding = said<FeederReport>(child, 'report')
  const [feeder, complaints] = await Promise.all([feeding, cause(stage)])
  clearTimeout(limit)
  say(`${feeder.acknowledged.length} jobs acknowledged; ${feeder.endMs.length} of them watched to their end`)
  const figures = watch.stop()
  await untilAllEnded(stage, feeder)
  const reports = await Promise.all(
    swarms.map(async (swarm) => {
      const report = said<SwarmReport>(swarm, 'report')
      swarm.send('end')
      return report
    }),
  )
  return { feeder, swarms: reports, figures, complaints }
}

async function untilAllEnded(stage: Stage, { acknowledged }: FeederReport): Promise<void> {
  const storage = await stage.storage.open()
  try {
    const began = performance.now()
    for (;;) {
      const { finished = 0 } = await storage.counts('job', {})
      if (finished >= acknowledged.length) break
      if (performance.now() - began > REST_MS) {
        say(`after ${REST_MS / 1_000} s still ${acknowledged.length - finished} jobs have not ended`)
        break
      }
      await pause(250)
    }
    say(`all at rest ${Math.round(performance.now() - began)} ms after the last acknowledged job`)
  } finally {
    await storage.close()
  }
}

function percentiles(values_: readonly number[]): string {
  const sorted = values_.toSorted((one, other) => one - other)
  const at = (share: number): number =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0)
  return `p50 ${at(0.5)}  p90 ${at(0.9)}  p99 ${at(0.99)}  p99.9 ${at(0.999)}  max ${at(1)} ms  (${sorted.length})`
}

function tell(verdict: Verdict, { feeder, swarms, figures, complaints }: Played): boolean {
  const held = feeder.attempted / SECONDS
  const cured = added(feeder.cured, ...swarms.map((swarm) => swarm.cured))
  const incurable = added(feeder.incurable, ...swarms.map((swarm) => swarm.incurable))
  const total = (pick: (swarm: SwarmReport) => number): number => swarms.reduce((sum, swarm) => sum + pick(swarm), 0)
  const { lost, unexpected, endedTwice, unfinished, wrong, stored } = verdict
  console.log(`
${values.blueprint} on ${STORAGE}, ${values.instances} instances, ${values.workers} workers, ${cpus().length} cores, ${SECONDS} s
rate      ${held.toFixed(1)} jobs/s of ${RATE} (late in ${feeder.late} ticks)
jobs      attempted ${feeder.attempted}, acknowledged ${verdict.acknowledged}, stored ${stored}
          lost ${lost.length}, unexpected ${unexpected.length}, ended twice ${endedTwice.length}, unfinished ${unfinished.length}, wrong ${wrong.length}
tasks     ${total((swarm) => swarm.tasks)} delivered, ${total((swarm) => swarm.ignored)} too late, ${total((swarm) => swarm.polls)} polls
start     ${percentiles(feeder.startMs)}
end       ${percentiles(feeder.endMs)} as the client saw it
          ${percentiles(verdict.lifeMs)} by the storage's clock`)
  for (const [label, { processes, cpuPercent, rssMiBMax }] of Object.entries(figures)) {
    console.log(`${label.padEnd(10)}${processes} processes, ${cpuPercent} % of a core, ${rssMiBMax} MiB at most`)
  }
  console.log(`cured by repeating: ${JSON.stringify(cured, undefined, 2)}`)
  const failures = [
    ...complaints,
    ...Object.entries(incurable).map(([kind, times]) => `${kind}, ${times} times`),
    ...(held < RATE * 0.95 ? [`the rate was not held: ${held.toFixed(1)} of ${RATE} jobs/s`] : []),
    ...Object.entries({ lost, unexpected, endedTwice, unfinished, wrong }).flatMap(([what, ids]) =>
      ids.length === 0 ? [] : [`${what}: ${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ' …' : ''}`],
    ),
  ]
  for (const failure of failures) console.log(`✗ ${failure}`)
  if (failures.length === 0) console.log('✓ nothing lost, nothing twice, nothing that a repetition did not cure')
  return failures.length === 0
}

/** Interrupted: everything ends with this process. Storage and nginx notice by themselves. */
function abandon(stage: Stage): void {
  for (const { process: instance } of stage.instances) void instance.kill()
  rmSync(directory, { recursive: true, force: true })
  process.kill(process.pid, 'SIGKILL')
}

/** On a disk and not in memory, so that acknowledged writes have their real cost. */
const directory = mkdtempSync(join(tmpdir(), 'impresario-cluster-'))
chmodSync(directory, 0o711)
process.env[RUN_DIRECTORY] = directory
try {
  const stage = await Stage.start(STORAGE, Number(values.instances))
  say(`${values.instances} instances on ${STORAGE} behind nginx`)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => abandon(stage))
  try {
    const played = await play(stage)
    await stage.close()
    const storage = await stage.storage.open()
    const verdict = await judge(storage, new Map(played.feeder.acknowledged), played.feeder.attempted)
    await storage.close()
    if (!tell(verdict, played)) process.exitCode = 1
  } finally {
    for (const { process: instance } of stage.instances) await instance.kill()
    await stage.nginx.stop()
    await stage.storage.remove()
  }
} finally {
  rmSync(directory, { recursive: true, force: true })
}
