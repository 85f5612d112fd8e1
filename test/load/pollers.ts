/**
 * What idle workers cost: thousands of them, each with one long poll and its heartbeats, on one server with its embedded
 * file. Measured are the processor time of the server over whole polls, and how much its memory has grown for each worker.
 * A bare Node server with the same requests is measured before it, as the floor. Linux only.
 *
 *   npm run bench:pollers                                    10,000 workers for 60 seconds
 *   npm run bench:pollers -- --workers 1000 --seconds 30     to see whether it runs at all
 *   npm run bench:pollers -- --profile /tmp/profile          writes a CPU profile of the server there
 *
 * Needs as many open files as there are workers, and some hundred more (`ulimit -n`). Ends with an error when the server
 * takes more than 30 % of a core for 10,000 workers, or more than 25 KB for each.
 */
import { fork, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { LIMITS } from '@impresario/protocol'
import type { PollerReport } from './poller-swarm.ts'
import { listening, startServer } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '60' },
    profile: { type: 'string', default: '' },
    'no-floor': { type: 'boolean', default: false },
  },
})
const WORKERS = Number(values.workers)
const TOKEN = 'pollers-worker-token-0123456789'
const FLOOR = fileURLToPath(new URL('poller-floor.ts', import.meta.url))
const SWARM = fileURLToPath(new URL('poller-swarm.ts', import.meta.url))
const OWN_FILES = 500
/** For 10,000 workers; the share of a core counts in proportion. */
const CORE_PERCENT_MAX = 30
const KB_MAX = 25

interface Figures {
  readonly corePercent: number
  readonly kbEach: number
  readonly requestsPerS: number
}

function mustHaveFiles(): void {
  const limit = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  if (limit === 'unlimited' || Number(limit) >= WORKERS + OWN_FILES) return
  throw new Error(
    `${WORKERS} workers need ${WORKERS + OWN_FILES} open files, and ${String(limit)} are allowed. Raise ulimit -n.`,
  )
}

const ENV = { CLIENT_TOKEN: 'pollers-client-token-0123456789', WORKER_TOKEN: TOKEN }

function startFloor(): Promise<ServerProcess> {
  const args = ['--conditions=source', '--import', 'tsx', FLOOR]
  return listening(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }))
}

function rssKb({ pid }: ChildProcess): number {
  const [, kb = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid ?? 0}/status`, 'utf8')) ?? []
  return Number(kb) * 1.024
}

function cpuSeconds({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid ?? 0}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function said<T extends { readonly type: string }>(child: ChildProcess, type: T['type']): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error('The swarm ended before it had reported.')))
    child.on('message', (message: T) => {
      if (message.type === type) resolve(message)
    })
  })
}

async function reported(swarm: ChildProcess): Promise<PollerReport> {
  const report = said<PollerReport>(swarm, 'report')
  swarm.send('report')
  return report
}

async function measured(name: string, { child, address }: ServerProcess): Promise<Figures> {
  await pause(2_000)
  const beforeKb = rssKb(child)
  const swarm = fork(SWARM, {
    execArgv: ['--conditions=source', '--import', 'tsx'],
    env: { ...process.env, SWARM_URL: address, SWARM_TOKEN: TOKEN, SWARM_SIZE: String(WORKERS) },
  })
  try {
    const began = performance.now()
    await said(swarm, 'ready')
    print(`${name}: ${WORKERS} workers registered in ${Math.round(performance.now() - began)} ms`)
    // Until every one of them has polled a second time.
    await pause(LIMITS.longPollMs + 5_000)
    const before = await reported(swarm)
    const spent = cpuSeconds(child)
    const at = performance.now()
    await pause(Number(values.seconds) * 1_000)
    const seconds = (performance.now() - at) / 1_000
    const corePercent = ((cpuSeconds(child) - spent) / seconds) * 100
    const after = await reported(swarm)
    const requests = after.polls - before.polls + after.beats - before.beats
    const figures = {
      corePercent,
      kbEach: (rssKb(child) - beforeKb) / WORKERS,
      requestsPerS: requests / seconds,
    }
    print(
      `${name}: ${corePercent.toFixed(1)} % of a core, ${figures.kbEach.toFixed(1)} KB each ` +
        `(${Math.round(beforeKb / 1_000)} MB before, ${Math.round(rssKb(child) / 1_000)} MB with them), ` +
        `${figures.requestsPerS.toFixed(0)} requests a second`,
    )
    if (Object.keys(after.mishaps).length > 0) print(`${name}: mishaps ${JSON.stringify(after.mishaps)}`)
    return figures
  } finally {
    swarm.kill('SIGKILL')
    await ended(child)
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

mustHaveFiles()
const directory = mkdtempSync(join(tmpdir(), 'impresario-bench-pollers-'))
try {
  if (!values['no-floor']) {
    const floor = await startFloor()
    await measured('bare Node server', floor)
  }
  const server = await startServer({ directory, env: ENV, profile: values.profile })
  const { corePercent, kbEach } = await measured('impresario', server)
  const percentMax = (CORE_PERCENT_MAX * WORKERS) / 10_000
  const isKept = corePercent <= percentMax && kbEach <= KB_MAX
  print(isKept ? 'kept' : `NOT kept: at most ${percentMax} % of a core and ${KB_MAX} KB each`)
  if (!isKept) process.exitCode = 1
} finally {
  rmSync(directory, { recursive: true, force: true })
}
