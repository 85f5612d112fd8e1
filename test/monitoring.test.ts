import { execFile, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { ClientDocuments, documentsConfig } from '@impresario/documents'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { createWorker } from '@impresario/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from './servers/free-port.ts'

/* Metrics, alert rules and dashboards against a real Prometheus: a renamed metric fails here and not at a user's. */

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '..')
const RULES = join(ROOT, 'deploy/prometheus')
const DASHBOARDS = join(ROOT, 'deploy/grafana')
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const METRICS_TOKEN = 'token-of-prometheus-4711'

const work = blueprint('work', { start: 'call', taskAttemptsMax: 1 }, (state) => ({
  call: state.handler((context, actions) =>
    actions.dispatchTask({
      type: typeof context.initialData['task'] === 'string' ? context.initialData['task'] : 'do',
      params: {},
      dispatchTimeout: '1s',
      transitions: { success: 'done', failure: 'failed' },
    }),
  ),
  done: state.end(),
  failed: state.end({ outcome: 'failed' }),
}))
const broken = blueprint('broken', { start: 'fall', handlerAttemptsMax: 1 }, (state) => ({
  fall: state.handler((context, actions) => {
    if (context.initialData['mended'] !== true) throw new Error('It fell over.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))
const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))

test('[I-06] every alert fires and resolves', async () => {
  await run('promtool', ['check', 'rules', join(RULES, 'alerts.yml')])
  await run('promtool', ['test', 'rules', join(RULES, 'alerts.test.yml')])
  const rules = await readFile(join(RULES, 'alerts.yml'), 'utf8')
  const tests = await readFile(join(RULES, 'alerts.test.yml'), 'utf8')
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name ?? '')
  expect(alerts.filter((name) => !tests.includes(`- name: ${name}\n`))).toEqual([])
})

describe('a server under load', () => {
  let directory = ''
  let server: Server
  let strict: Server
  let documents: ClientDocuments
  let url = ''
  let prometheus: ChildProcess
  let prometheusUrl = ''
  let client: Client
  let worker: ReturnType<typeof createWorker>

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'impresario-monitoring-'))
    const schedulesConfigPath = join(directory, 'schedules.toml')
    await writeFile(schedulesConfigPath, '[often]\nblueprint = "quick"\ninterval_seconds = 1\n')
    const base = { apiHost: '127.0.0.1', apiPort: 0, metricsToken: METRICS_TOKEN }
    const settings = { ...base, storageUrl: `file:${join(directory, 'data')}`, schedulesConfigPath }
    const folder = join(directory, 'documents')
    await mkdir(folder)
    await writeFile(join(folder, 'letter.txt'), 'A letter.')
    const config = documentsConfig({ clients: { default: { folders: [folder] } } })
    documents = new ClientDocuments({ directory: join(directory, 'indexes'), config })
    const blueprints = [work, broken, quick, documents.blueprint]
    server = createServer({ blueprints, documents, log: SILENT, settings })
    const tokens = { clientToken: 'token-of-a-client-81', workerToken: 'token-of-a-worker-82' }
    const limits = { ...tokens, rateLimitGeneral: 1, rateLimitPeriodSeconds: 3_600 }
    strict = createServer({ blueprints: [quick], log: SILENT, settings: { ...base, storageUrl: 'memory:', ...limits } })
    url = (await server.start()).address
    await documents.start(server)
    const strictUrl = (await strict.start()).address
    client = createClient({ url })
    worker = await startWorker(server)
    prometheusUrl = `http://127.0.0.1:${await freePort()}`
    prometheus = await startPrometheus(directory, prometheusUrl, [url, strictUrl])
    await load(client, strictUrl)
  }, 60_000)

  afterAll(async () => {
    if (prometheus?.exitCode === null) {
      prometheus.kill('SIGKILL')
      await once(prometheus, 'exit')
    }
    await worker?.stop()
    await documents?.stop()
    await Promise.all([server?.stop(), strict?.stop()])
    await rm(directory, { recursive: true, force: true })
  }, 60_000)

  test('[I-03] [I-06] [K-17] defect 18: every expression of every dashboard has a series in Prometheus', async () => {
    const { expressions, sources } = await dashboards()
    expect(expressions.length).toBeGreaterThan(30)
    let missing = expressions
    for (let tries = 0; missing.length > 0 && tries < 60; tries += 1) {
      if (tries > 0) await once(AbortSignal.timeout(1_000), 'abort')
      await load(client, undefined)
      const found = await Promise.all(missing.map(async (expr) => (await query(prometheusUrl, expr)) > 0))
      missing = missing.filter((_, index) => !found[index])
    }
    expect(missing.map((expr) => `${sources.get(expr)}: ${expr}`)).toEqual([])
  }, 120_000)

  test('[I-03] [I-04] Prometheus gets a job of each bucket of the durations as its example', async () => {
    const question = `${prometheusUrl}/api/v1/query_exemplars?query=orchestrator_job_duration_seconds_bucket&start=0&end=9999999999`
    const examples = async (): Promise<readonly { labels: Record<string, string> }[]> => {
      const { data } = (await (await fetch(question)).json()) as {
        data: { exemplars: { labels: Record<string, string> }[] }[]
      }
      return data.flatMap(({ exemplars }) => exemplars)
    }
    await expect.poll(async () => (await examples()).length).toBeGreaterThan(0)
    const [first] = await examples()
    expect((await client.job(first?.labels['job_id'] ?? '').wait()).status).toBe('finished')
  })

  test('[I-03] promtool accepts the text; the token is needed; a scrape is quick', async () => {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
    for (const path of ['/metrics', '/_public/metrics']) {
      expect((await fetch(`${url}${path}`)).status).toBe(401)
      const answer = await fetch(`${url}${path}`, { headers })
      expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
      const child = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] })
      const complaints: string[] = []
      child.stderr.on('data', (part) => complaints.push(String(part)))
      child.stdout.on('data', (part) => complaints.push(String(part)))
      child.stdin.end(await answer.text())
      const [code] = (await once(child, 'exit')) as [number]
      expect({ code, complaints }).toEqual({ code: 0, complaints: [] })
    }
  })
})

async function startWorker(server: Server): Promise<ReturnType<typeof createWorker>> {
  const worker = createWorker({ transport: server.localTransport(), id: 'hand', shutdownMs: 0, log: SILENT })
    .task('do', () => ({ ok: true }))
    .task('late', async (_params, { signal }) => {
      await once(signal, 'abort')
      return {}
    })
  await worker.start()
  return worker
}

/** Something of everything that is counted. */
async function load(client: Client, strictUrl: string | undefined): Promise<void> {
  const jobs = await Promise.all([
    client.start('work', {}),
    client.start('work', { task: 'nobody-does-this' }),
    client.start('broken', {}),
    client.start('quick', {}),
  ])
  await jobs[0]?.files.upload('a.txt', 'content')
  await jobs[0]?.files.download('a.txt')
  await Promise.all(jobs.map(async (job) => job.wait()))
  const automation = await client.automations.create({
    title: 'Say',
    pipeline: [{ id: 'tell', uses: 'log', with: { message: 'Hello' } }],
  })
  await client.automations.run(automation.id)
  const late = await client.start('work', { task: 'late' })
  for await (const { work: at } of late.watch()) if ((at?.running ?? 0) > 0) break
  await late.cancel()
  if (strictUrl === undefined) return
  for (let index = 0; index < 3; index += 1) {
    await fetch(`${strictUrl}/api/v1/jobs`, { headers: { 'x-client-token': 'token-of-a-client-81' } })
  }
}

async function startPrometheus(directory: string, url: string, targets: readonly string[]): Promise<ChildProcess> {
  const config = join(directory, 'prometheus.yml')
  const hosts = targets.map((target) => `'${new URL(target).host}'`).join(', ')
  await writeFile(
    config,
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ['${join(RULES, 'alerts.yml')}']
scrape_configs:
  - job_name: impresario
    authorization: { credentials: '${METRICS_TOKEN}' }
    static_configs: [{ targets: [${hosts}] }]
`,
  )
  const { host } = new URL(url)
  const flags = [`--config.file=${config}`, `--storage.tsdb.path=${join(directory, 'tsdb')}`, '--log.level=error']
  const examples = '--enable-feature=exemplar-storage'
  const child = spawn('prometheus', [...flags, examples, `--web.listen-address=${host}`], { stdio: 'ignore' })
  for (;;) {
    if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}`)
    const isReady = await fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) return child
    await once(AbortSignal.timeout(50), 'abort')
  }
}

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
}

async function dashboards(): Promise<{ expressions: readonly string[]; sources: ReadonlyMap<string, string> }> {
  const sources = new Map<string, string>()
  for (const file of await readdir(DASHBOARDS)) {
    if (!file.endsWith('.json')) continue
    const { panels } = JSON.parse(await readFile(join(DASHBOARDS, file), 'utf8')) as Dashboard
    for (const { title, targets } of panels) {
      for (const { expr } of targets) sources.set(expr.replaceAll('$__rate_interval', '30s'), `${file}, ${title}`)
    }
  }
  return { expressions: [...sources.keys()], sources }
}

/** How many series the expression has now. */
async function query(url: string, expr: string): Promise<number> {
  const answer = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query: expr }).toString()}`)
  const body = (await answer.json()) as { status: string; error?: string; data?: { result: readonly unknown[] } }
  if (body.status !== 'success') throw new Error(`${expr}: ${body.error}`)
  return body.data?.result.length ?? 0
}
