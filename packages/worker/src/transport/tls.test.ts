import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createWorker } from '../index.ts'
import { silentLog, taskOf, TestOrchestrator } from '../orchestrator.fixture.ts'

const HAS_OPENSSL = spawnSync('openssl', ['version']).status === 0
const directory = mkdtempSync(join(tmpdir(), 'impresario-worker-tls-'))
const at = (name: string): string => join(directory, name)
const text = (name: string): string => readFileSync(at(name), 'utf8')

const cleanUp: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const clean of cleanUp.splice(0).toReversed()) await clean()
})

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { cwd: directory, stdio: 'ignore' })
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** An authority, and certificates of it for the server and for the worker. */
function makeCertificates(): void {
  openssl('req', '-x509', ...NEW_KEY, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=authority')
  writeFileSync(at('san.txt'), 'subjectAltName=DNS:localhost')
  for (const [name, subject] of [
    ['server', '/CN=localhost'],
    ['worker', '/CN=w1'],
  ] as const) {
    openssl('req', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject)
    const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'san.txt']
    openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.pem`, ...signed)
  }
}

test.skipIf(!HAS_OPENSSL)(
  '[E-05] with a client certificate, requests and the socket are known by it, and tokens are signed in for',
  async () => {
    makeCertificates()
    const tls = { key: text('server.key'), cert: text('server.pem'), ca: text('ca.pem') }
    const orchestrator = await new TestOrchestrator({ tls }).listen()
    cleanUp.push(() => orchestrator.close())
    orchestrator.intercept = ({ path }) =>
      path === '/_worker/auth/token' ? { status: 200, body: { access_token: 'short', expires_in: 3_600 } } : undefined
    const files = { caPath: at('ca.pem'), certPath: at('worker.pem'), keyPath: at('worker.key') }
    const common = { url: orchestrator.url, id: 'w1', log: silentLog, shutdownMs: 0, registrationRetryMs: 1 }
    const worker = createWorker({ ...common, tls: files, webSockets: true }).task('t', () => ({ n: 1 }))
    cleanUp.push(() => worker.stop())
    await worker.start()
    orchestrator.give(taskOf('t'))
    await orchestrator.until(() => orchestrator.results.length === 1 && orchestrator.sockets.length === 1)
    expect(new Set(orchestrator.requests.map(({ certificate }) => certificate))).toEqual(new Set(['w1']))
    const [signIn, ...others] = orchestrator.requests
    expect([signIn?.path, signIn?.headers['x-worker-token']]).toEqual(['/_worker/auth/token', undefined])
    expect(new Set(others.map(({ headers }) => headers['x-worker-token']))).toEqual(new Set(['short']))
  },
)

test.skipIf(!HAS_OPENSSL)(
  '[E-05] an orchestrator whose certificate is of an unknown authority is not spoken to',
  async () => {
    makeCertificates()
    const tls = { key: text('server.key'), cert: text('server.pem'), ca: text('ca.pem') }
    const orchestrator = await new TestOrchestrator({ tls }).listen()
    cleanUp.push(() => orchestrator.close())
    const warnings: string[] = []
    const log = { ...silentLog, warn: (_message: string, fields?: object) => warnings.push(JSON.stringify(fields)) }
    const worker = createWorker({ url: orchestrator.url, id: 'w1', token: 'secret', log, shutdownMs: 0 })
    cleanUp.push(() => worker.stop())
    void worker.start()
    await expect.poll(() => warnings.join('')).toMatch(/certificate/i)
    expect(orchestrator.requests).toEqual([])
  },
)
