import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { userInfo } from 'node:os'
import { ensure } from '../system/debian-packages.ts'
import { freePort } from './free-port.ts'
import { newDirectory } from './run-directory.ts'
import { startWatchdog } from './watchdog.ts'

const PACKAGES = ['swift-proxy', 'swift-account', 'swift-container', 'swift-object']

/** Why there is no Swift to test with; nothing if there is one. */
export const missingSwift: string | undefined = ensure(PACKAGES)

/** OpenStack Swift with its S3 API: a store that checks signatures, checksums and the ends of links, as Amazon's does. */
export interface SwiftServer {
  readonly endpoint: string
  readonly accessKey: string
  readonly secretKey: string
  readonly region: string
  remove(): Promise<void>
}

const KINDS = ['account', 'container', 'object'] as const

/** Four processes on ports of their own, with one copy of everything in a temporary directory. */
export async function startSwift(): Promise<SwiftServer> {
  if (missingSwift !== undefined) throw new Error(missingSwift)
  const directory = newDirectory('swift')
  mkdirSync(join(directory, 'devices', 'disk'), { recursive: true })
  const log = join(directory, 'log')
  const output = openSync(log, 'a')
  const ready: Promise<void>[] = []
  const children: ChildProcess[] = []
  const watchdogs: { dismiss(): void }[] = []
  const run = (program: string, configuration: string): ChildProcess => {
    // Into the file by themselves: a pipe that is not read in time would stop them.
    const child = spawn(program, [configuration], { stdio: ['ignore', output, output] })
    const watchdog = startWatchdog('KILL', directory)
    watchdog.watch(child.pid ?? 0)
    children.push(child)
    watchdogs.push(watchdog)
    return child
  }
  for (const kind of KINDS) {
    const port = await freePort()
    makeRing(directory, kind, port)
    const file = join(directory, `${kind}-server.conf`)
    writeFileSync(
      file,
      `${common(directory, port)}\n[pipeline:main]\npipeline = healthcheck ${kind}-server\n
[filter:healthcheck]\nuse = egg:swift#healthcheck\n
[app:${kind}-server]\nuse = egg:swift#${kind}\n`,
    )
    const child = run(`swift-${kind}-server`, file)
    ready.push(Promise.race([isHealthy(`http://127.0.0.1:${port}`), failure(child, log)]))
  }
  const port = await freePort()
  const file = join(directory, 'proxy-server.conf')
  writeFileSync(file, `${common(directory, port)}\n${PROXY}`)
  const proxy = run('swift-proxy-server', file)
  const endpoint = `http://127.0.0.1:${port}`
  await Promise.all([...ready, Promise.race([isHealthy(endpoint), failure(proxy, log)])])
  return {
    endpoint,
    accessKey: 'test:tester',
    secretKey: 'testing',
    region: 'us-east-1',
    async remove() {
      await Promise.all(children.map(end))
      closeSync(output)
      rmSync(directory, { recursive: true, force: true })
      for (const watchdog of watchdogs) watchdog.dismiss()
    },
  }
}

function common(directory: string, port: number): string {
  return `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = ${userInfo().username}
swift_dir = ${directory}
devices = ${join(directory, 'devices')}
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
log_level = WARNING
conn_timeout = 30
node_timeout = 60
client_timeout = 60
`
}

/** Memcached is only for tokens and for speed; the S3 API has signatures instead. */
const PROXY = `[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats bulk s3api tempauth copy slo dlo proxy-server

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
conn_timeout = 30
node_timeout = 60
error_suppression_limit = 100000

[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin

[filter:s3api]
use = egg:swift#s3api
location = us-east-1
s3_acl = false
dns_compliant_bucket_names = true
check_bucket_owner = false

[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
`

function makeRing(directory: string, kind: string, port: number): void {
  const builder = join(directory, `${kind}.builder`)
  const ring = (...words: readonly string[]): void => {
    execFileSync('swift-ring-builder', [builder, ...words], { stdio: 'ignore' })
  }
  ring('create', '4', '1', '1')
  ring('add', `r1z1-127.0.0.1:${port}/disk`, '1')
  ring('rebalance')
}

async function isHealthy(endpoint: string): Promise<void> {
  for (;;) {
    const isUp = await fetch(`${endpoint}/healthcheck`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isUp) return
    await sleep(50)
  }
}

/** Rejects when it ends; from the moment on when it has taken requests, nobody listens. */
async function failure(child: ChildProcess, log: string): Promise<never> {
  await once(child, 'exit')
  throw new Error(`Swift ended before it took requests: ${readFileSync(log, 'utf8').slice(-4_000)}`)
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
