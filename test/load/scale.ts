import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startCluster } from '../servers/redis-cluster.ts'

/*
 * Whether a cluster grows: jobs per second with one, two and three primaries of Redis that have a small share of a core each,
 * and with one, two and three instances that have a small share each. The shares keep the machine out of it: whatever else
 * runs on it, the part that is held to its share is the bottleneck. Needs root, for control groups.
 *
 *   npm run bench:scale -- [--share 0.04] [--instance-share 0.1] [--seconds 10] [--shards 12] [--open 400]
 */

const { values } = parseArgs({
  options: {
    share: { type: 'string', default: '0.04' },
    'instance-share': { type: 'string', default: '0.1' },
    seconds: { type: 'string', default: '10' },
    shards: { type: 'string', default: '12' },
    open: { type: 'string', default: '400' },
  },
})
const SECONDS = Number(values.seconds)
const CGROUPS = '/sys/fs/cgroup/cpu'
const WARM_MS = 5_000
const PERIOD_US = 50_000

interface Measured {
  readonly perS: number
  readonly instanceMs: number
  readonly redisMs: number
}

/** Holds a process to a share of a core. Gives what to call when the process is gone. */
function hold(pid: number, share: number | undefined): () => void {
  if (share === undefined) return () => undefined
  const group = join(CGROUPS, `impresario-${pid}`)
  mkdirSync(group)
  writeFileSync(join(group, 'cpu.cfs_period_us'), `${PERIOD_US}`)
  writeFileSync(join(group, 'cpu.cfs_quota_us'), `${Math.round(share * PERIOD_US)}`)
  writeFileSync(join(group, 'cgroup.procs'), `${pid}`)
  return () => rmdirSync(group)
}

interface Told {
  readonly done: number
  readonly cpuMs: number
}

function ask(child: ChildProcess): Promise<Told> {
  return new Promise((resolve) => {
    child.once('message', (told) => resolve(told as Told))
    child.send('count')
  })
}

async function startInstance(url: string, name: string): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'scale-instance.ts'), [url, name, values.open])
  await new Promise((resolve) => child.once('message', resolve))
  return child
}

async function measure(
  primaries: number,
  instances: number,
  shares: { readonly redis?: number; readonly instance?: number },
): Promise<Measured> {
  const cluster = await startCluster(primaries)
  const releases: (() => void)[] = []
  try {
    const url = `${cluster.url}&namespace=scale&shards=${values.shards}`
    const children: ChildProcess[] = []
    for (let index = 0; index < instances; index += 1) children.push(await startInstance(url, `i${index}`))
    // Held back once their code is compiled.
    await sleep(WARM_MS)
    for (const { pid = 0 } of children) releases.push(hold(pid, shares.instance))
    for (const operator of cluster.operators) {
      const [, pid = ''] = /process_id:(\d+)/.exec(await operator.info('server')) ?? []
      releases.push(hold(Number(pid), shares.redis))
    }
    await sleep(3_000)
    const cpu = async (): Promise<number> => {
      const all = await Promise.all(cluster.operators.map((operator) => operator.info('cpu')))
      return sum(all, (info) => secondsIn(info, 'used_cpu_sys') + secondsIn(info, 'used_cpu_user'))
    }
    const [before, cpuBefore, began] = [await Promise.all(children.map(ask)), await cpu(), performance.now()]
    await sleep(SECONDS * 1_000)
    const [after, cpuAfter] = [await Promise.all(children.map(ask)), await cpu()]
    const seconds = (performance.now() - began) / 1_000
    const jobs = sum(after, ({ done }) => done) - sum(before, ({ done }) => done)
    const instanceMs = (sum(after, ({ cpuMs }) => cpuMs) - sum(before, ({ cpuMs }) => cpuMs)) / jobs
    await Promise.all(children.map(gone))
    return { perS: jobs / seconds, instanceMs, redisMs: ((cpuAfter - cpuBefore) * 1_000) / jobs }
  } finally {
    await cluster.remove()
    for (const release of releases) release()
  }
}

function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0)
}

function secondsIn(info: string, name: string): number {
  const [, seconds = '0'] = new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info) ?? []
  return Number(seconds)
}

async function gone(child: ChildProcess): Promise<void> {
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await exit
}

function shown(what: string, first: Measured | undefined, { perS, instanceMs, redisMs }: Measured): string {
  const ratio = first === undefined ? '' : `  ${(perS / first.perS).toFixed(2)} x`
  return `${what}  ${Math.round(perS)} /s${ratio}  CPU ms a job: instances ${instanceMs.toFixed(3)}, Redis ${redisMs.toFixed(3)}`
}

let first: Measured | undefined
for (const primaries of [1, 2, 3]) {
  const measured = await measure(primaries, 1, { redis: Number(values.share) })
  console.log(shown(`primaries ${primaries}`, first, measured))
  first ??= measured
}
first = undefined
for (const instances of [1, 2, 3]) {
  const measured = await measure(3, instances, { instance: Number(values['instance-share']) })
  console.log(shown(`instances ${instances}`, first, measured))
  first ??= measured
}
