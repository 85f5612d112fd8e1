import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ensure } from '../system/debian-packages.ts'
import { freePort } from './free-port.ts'
import { newDirectory } from './run-directory.ts'
import { startWatchdog } from './watchdog.ts'

/** Why there is no nginx to test with; `undefined` if there is one. */
export const missingNginx: string | undefined = ensure(['nginx', 'openssl'])

/** A real nginx with the configuration of `deploy/nginx`: only addresses, ports and paths differ. */
export interface NginxServer {
  /** Uses the name in its certificate. */
  readonly url: string
  readonly port: number
  readonly plainPort: number
  readonly pid: number
  /** The self-signed certificate: its file and its text. */
  readonly caPath: string
  readonly ca: string
  /** The requests served so far. Each line appears within a second. */
  served(): readonly ServedRequest[]
  /** The error log. */
  complaints(): string
  stop(): Promise<void>
}

/** A line of the access log, reduced to the fields that tests use. */
interface ServedRequest {
  readonly address: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly protocol: string
  /** Every instance that was tried, in order. */
  readonly instance: string
}

export interface NginxOptions {
  /** Addresses of the instances, such as `127.0.0.1:8081`. */
  readonly instances: readonly string[]
  /** Where it listens; by default only this machine can reach it. */
  readonly host?: string
}

const CONFIGURATION = fileURLToPath(new URL('../../deploy/nginx', import.meta.url))

export async function startNginx({ instances, host = '127.0.0.1' }: NginxOptions): Promise<NginxServer> {
  if (missingNginx !== undefined) throw new Error(missingNginx)
  const directory = newDirectory('nginx')
  // Its processes run as another user, and put large bodies here.
  chmodSync(directory, 0o711)
  const [port, plainPort] = [await freePort(), await freePort()]
  const caPath = join(directory, 'fullchain.pem')
  makeCertificate(caPath, join(directory, 'privkey.pem'))
  writeConfiguration({ directory, host, port, plainPort, instances })
  const watchdog = startWatchdog('QUIT', directory)
  const flags = ['-p', directory, '-c', join(directory, 'nginx.conf'), '-g', 'daemon off;']
  const child = spawn('nginx', flags, { stdio: ['ignore', 'ignore', 'pipe'] })
  watchdog.watch(child.pid ?? 0)
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = once(child, 'exit').then(() => {
    throw new Error(`nginx ended before it took connections: ${output}`)
  })
  await Promise.race([accepts(host, port), ended])
  ended.catch(() => undefined)
  return {
    url: `https://localhost:${port}`,
    port,
    plainPort,
    pid: child.pid ?? 0,
    caPath,
    ca: readFileSync(caPath, 'utf8'),
    served: () => linesOf(join(directory, 'access.log')),
    complaints: () => readFileSync(join(directory, 'error.log'), 'utf8'),
    async stop() {
      await end(child)
      rmSync(directory, { recursive: true, force: true })
      watchdog.dismiss()
    },
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

function makeCertificate(certificate: string, key: string): void {
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const place = ['-subj', '/CN=localhost', '-addext', names, '-keyout', key, '-out', certificate]
  execFileSync('openssl', ['req', ...kind, ...place], { stdio: 'ignore' })
}

interface NginxSite {
  readonly directory: string
  readonly host: string
  readonly port: number
  readonly plainPort: number
  readonly instances: readonly string[]
}

/** Every replacement has to find its text: otherwise the test would use another configuration. */
function writeConfiguration({ directory, host, port, plainPort, instances }: NginxSite): void {
  const rewrite = (name: string, replacements: readonly (readonly [RegExp, string])[]): void => {
    let text = readFileSync(join(CONFIGURATION, name), 'utf8')
    for (const [pattern, replacement] of replacements) {
      if (!pattern.test(text)) throw new Error(`${name} of deploy/nginx has nothing like ${pattern}`)
      text = text.replace(pattern, replacement)
    }
    writeFileSync(join(directory, name), text)
  }
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `    ${kind}_temp_path ${join(directory, kind)};`,
  )
  rewrite('nginx.conf', [
    [/^pid .*;$/m, `pid ${join(directory, 'nginx.pid')};`],
    [/^error_log \S+/m, `error_log ${join(directory, 'error.log')}`],
    [/access_log \S+/, `access_log ${join(directory, 'access.log')}`],
    [/^http \{$/m, `http {\n${places.join('\n')}`],
    [/include \S+upstream.conf;/, `include ${join(directory, 'upstream.conf')};`],
    [/include \S+impresario.conf;/, `include ${join(directory, 'impresario.conf')};`],
  ])
  const [first = ''] =
    /^ +server 127\.0\.0\.1:8081 .*$/m.exec(readFileSync(join(CONFIGURATION, 'upstream.conf'), 'utf8')) ?? []
  const servers = instances.map((address) => first.replace('127.0.0.1:8081', address)).join('\n')
  rewrite('upstream.conf', [[/^ +server 127[^]*?8082 .*$/m, servers]])
  rewrite('impresario.conf', [
    [/^ +listen \[::\]:80;\n/m, ''],
    [/^ +listen \[::\]:443 .*;\n/m, ''],
    [/listen 80;/, `listen ${host}:${plainPort};`],
    [/listen 443 /, `listen ${host}:${port} `],
    [/server_name \S+;([^]*)server_name \S+;/, 'server_name localhost;$1server_name localhost;'],
    [/ssl_certificate \S+;/, `ssl_certificate ${join(directory, 'fullchain.pem')};`],
    [/ssl_certificate_key \S+;/, `ssl_certificate_key ${join(directory, 'privkey.pem')};`],
  ])
}

async function accepts(host: string, port: number): Promise<void> {
  for (;;) {
    const socket = connect({ port, host: host === '0.0.0.0' ? '127.0.0.1' : host })
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.on('error', () => resolve(false))
      socket.on('connect', () => resolve(true))
    })
    socket.destroy()
    if (isOpen) return
    await sleep(10)
  }
}

/** Type boundary: the log format that `deploy/nginx/nginx.conf` defines. */
function linesOf(path: string): readonly ServedRequest[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as ServedRequest)
}
