/** What automations and assistants rely on, with real servers that are killed without warning. */
import { createClient } from '@impresario/client'
import { createWorker } from '@impresario/worker'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { freePort } from '../servers/free-port.ts'
import { startRedis } from '../servers/redis-server.ts'
import { Victim } from './victim.fixture.ts'

const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('programs/blueprints', import.meta.url))
const CLIENT_TOKEN = 'kill-test-client-token'
const WORKER_TOKEN = 'kill-test-worker-token'
const QUIET = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

interface Instance {
  readonly victim: Victim
  readonly address: string
  readonly ready: () => Promise<void>
}

async function instance(storageUrl: string, id: string, env: NodeJS.ProcessEnv = {}): Promise<Instance> {
  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const victim = new Victim([CLI, 'start'], {
    API_HOST: '127.0.0.1',
    API_PORT: String(port),
    STORAGE_URL: storageUrl,
    INSTANCE_ID: id,
    BLUEPRINTS_DIR: BLUEPRINTS,
    CLIENT_TOKEN,
    WORKER_TOKEN,
    LOG_LEVEL: 'error',
    ...env,
  })
  const ready = async (): Promise<void> => {
    for (;;) {
      const answer = await fetch(`${address}/_public/ready`).catch(() => undefined)
      if (answer?.ok === true) return
      if (!victim.isRunning) throw new Error(`The server does not start: ${victim.output}`)
      await pause(25)
    }
  }
  endings.push(() => victim.stop())
  victim.start()
  await ready()
  return { victim, address, ready }
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'impresario-automations-kill-'))
  endings.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test(
  '[K-16] what a task used survives kill -9 of the server, and a report that was on its way counts once',
  { retry: 0 },
  async () => {
    const { victim, address, ready } = await instance(`file:${directory()}`, 'one')
    const client = createClient({ url: address, token: CLIENT_TOKEN })
    const worker = createWorker({ url: address, token: WORKER_TOKEN, id: 'thinker', log: QUIET, shutdownMs: 0 })
    endings.push(() => worker.stop())
    const restart = async (): Promise<void> => {
      await victim.kill()
      victim.start()
      await ready()
    }
    let deliveries = 0
    worker.task('think', async (_params, task) => {
      deliveries += 1
      await task.meter({ tokens: 100 })
      await restart()
      // Killed at two moments: before the report has arrived, and while it is written or answered.
      for (const afterMs of [0, 3]) {
        const sent = task.meter({ tokens: 10 })
        await pause(afterMs)
        await restart()
        await sent
      }
      return { thought: true }
    })
    await worker.start()
    const pipeline = [{ id: 'think', uses: 'task.think', with: {} }]
    const { id } = await client.automations.create({ title: 'Think', budget: { tokens_per_day: 120 }, pipeline })
    const { runId } = await client.automations.run(id)
    const run = await vi.waitFor(async () => {
      const found = await client.runs.get(runId ?? '')
      expect(found.endedAt).not.toBeNull()
      return found
    }, 120_000)
    expect({ deliveries, run }).toMatchObject({ deliveries: 1, run: { status: 'succeeded', usage: { tokens: 120 } } })
    expect((await client.automations.budget(id)).tokens).toEqual({ used: 120, limit: 120 })
    expect(await client.automations.run(id)).toMatchObject({ status: 'skipped', reason: 'budget' })
  },
)

/** One call of a step, as the service that the step calls saw it. */
interface SeenCall {
  readonly run: string
  readonly step: string
  /** How often the server had been killed by then. */
  readonly life: number
  readonly key: string
}

/** A service that steps call. It kills the server that called it at moments that are told before, once at each. */
class Service {
  readonly calls: SeenCall[] = []
  readonly troubles: string[] = []
  readonly #moments: Set<string>
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch((error: unknown) => this.troubles.push(String(error)))
  })
  #victim: Instance | undefined
  #restarting: Promise<void> = Promise.resolve()

  constructor(moments: readonly string[]) {
    this.#moments = new Set(moments)
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    endings.push(() => {
      this.#server.closeAllConnections()
      this.#server.close()
    })
    return (this.#server.address() as AddressInfo).port
  }

  kills(victim: Instance): void {
    this.#victim = victim
  }

  /** What it has not come to. */
  get momentsLeft(): readonly string[] {
    return [...this.#moments]
  }

  /** Kills the server if this is one of the moments, and resolves when it is there again. */
  async reached(moment: string): Promise<boolean> {
    if (!this.#moments.delete(moment)) return false
    const victim = this.#victim
    if (victim === undefined) throw new Error('There is no server to kill.')
    const before = this.#restarting
    this.#restarting = (async () => {
      await before
      await victim.victim.kill()
      victim.victim.start()
      await victim.ready()
    })()
    await this.#restarting
    return true
  }

  note(call: Omit<SeenCall, 'life'>): number {
    this.calls.push({ ...call, life: this.#victim?.victim.deaths ?? 0 })
    return this.calls.filter(({ run, step }) => run === call.run && step === call.step).length
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { run, step } = (await json(request)) as { readonly run: string; readonly step: string }
    const count = this.note({ run, step, key: String(request.headers['idempotency-key']) })
    if (await this.reached(`${step} is called`)) {
      response.destroy()
      return
    }
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ step, count }))
    await once(response, 'close')
    await this.reached(`${step} has answered`)
  }
}

const PATIENTLY = { timeout: 120_000, interval: 20 }

/** The order in which steps may be called. Those of one row run side by side. */
const CALLED = [['first'], ['item-a', 'item-b'], ['item-c'], ['task'], ['last']]

test(
  '[K-09] killed at every kind of step, a run goes on where it stood: every step has one result, and none that ended is done again',
  { retry: 0 },
  async () => {
    const service = new Service([
      'first has answered',
      'item-b is called',
      'item-c has answered',
      'task is called',
      'ask is answered',
      'last is called',
    ])
    const port = await service.listen()
    const one = await instance(`file:${directory()}`, 'one', {
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOW_PRIVATE: 'true',
      WEBHOOK_ALLOWED_PORTS: String(port),
    })
    service.kills(one)
    const client = createClient({ url: one.address, token: CLIENT_TOKEN })
    const worker = createWorker({ url: one.address, token: WORKER_TOKEN, id: 'hand', log: QUIET, shutdownMs: 0 })
    endings.push(() => worker.stop())
    worker.task('note', async ({ run }, task) => {
      const count = service.note({ run: run as string, step: 'task', key: task.idempotencyKey })
      await service.reached('task is called')
      return { count }
    })
    await worker.start()
    const calls = (step: string) => ({
      uses: 'http.request',
      with: { url: `http://127.0.0.1:${port}/`, method: 'POST', json: { run: '${params.run}', step } },
    })
    const { id } = await client.automations.create({
      title: 'Steps',
      overlap: 'parallel',
      retry: { maxRetries: 0 },
      pipeline: [
        { id: 'first', ...calls('first') },
        { id: 'skipped', if: "params.run == 'nobody'", ...calls('never') },
        { id: 'items', ...calls('item-${item}'), forEach: { items: "['a', 'b', 'c']", concurrency: 2 } },
        { id: 'wait', uses: 'delay', with: { seconds: 0.05 } },
        { id: 'task', uses: 'task.note', with: { run: '${params.run}' } },
        { id: 'ask', approval: { message: 'Go on?', decisions: ['yes', 'no'] } },
        { id: 'last', ...calls('last') },
      ],
    })
    const names = ['x', 'y', 'z']
    const started = await Promise.all(names.map((run) => client.automations.run(id, { run })))
    const runs = await Promise.all(
      started.map(async ({ runId: given }) => {
        const runId = given ?? ''
        await vi.waitFor(
          async () => expect((await client.job(runId).status()).status).toBe('waiting_for_human'),
          PATIENTLY,
        )
        // Another run may have the server killed meanwhile. A decision counts once, however often it is sent.
        await vi.waitFor(() => client.job(runId).approve('yes'), PATIENTLY)
        await service.reached('ask is answered')
        return vi.waitFor(async () => {
          const found = await client.runs.get(runId)
          expect(found.endedAt).not.toBeNull()
          return found
        }, PATIENTLY)
      }),
    )
    expect([service.momentsLeft, service.troubles]).toEqual([[], []])

    for (const [at, name] of names.entries()) {
      const run = runs[at]
      const record = run?.steps.map(({ id: step, status, attempts }) => [step, status, attempts])
      expect({ error: run?.error, status: run?.status, record }).toEqual({
        error: null,
        status: 'succeeded',
        record: [
          ['first', 'succeeded', 1],
          ['skipped', 'skipped', 1],
          ['items', 'succeeded', 1],
          ['wait', 'succeeded', 1],
          ['task', 'succeeded', 1],
          ['ask', 'succeeded', 1],
          ['last', 'succeeded', 1],
        ],
      })
      const own = service.calls.filter(({ run: of }) => of === name)
      const rank = own.map(({ step }) => CALLED.findIndex((row) => row.includes(step)))
      // Once a step was seen, those before it are over for good.
      expect(rank).toEqual(rank.toSorted((a, b) => a - b))
      expect(new Set(own.map(({ step }) => step))).toEqual(new Set(CALLED.flat()))
      // A step is called again only if the server was killed since, and by the same key.
      expect(new Set(own.map(({ step, life }) => `${step} ${life}`)).size).toBe(own.length)
      expect(new Set(own.map(({ step, key }) => `${step} ${key}`)).size).toBe(CALLED.flat().length)
    }
    const { items: audit } = await client.audit.list({ subject: id }).page()
    expect(audit.filter(({ action }) => action === 'run.started')).toHaveLength(names.length)
  },
)

/** A request of an assistant that knows tasks. */
async function asked(
  { address }: Instance,
  method: string,
  params: object,
): Promise<Readonly<Record<string, unknown>>> {
  const { name, taskId = name } = params as { readonly name?: string; readonly taskId?: string }
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
  }
  const response = await fetch(`${address}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${CLIENT_TOKEN}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      'mcp-name': taskId ?? '',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  })
  const text = await response.text()
  const [, event] = /^data: (\{.*\})$/m.exec(text) ?? []
  const { result } = JSON.parse(event ?? text) as { readonly result?: Readonly<Record<string, unknown>> }
  if (result === undefined) throw new Error(text)
  return result
}

/** Answers the question of a task; gives the task as it ends. */
async function answered(at: Instance, taskId: unknown): Promise<Readonly<Record<string, unknown>>> {
  const asking = await vi.waitFor(async () => {
    const found = await asked(at, 'tasks/get', { taskId })
    expect(found).toMatchObject({ taskId, status: 'input_required' })
    return found
  }, 60_000)
  const [key = ''] = Object.keys(asking['inputRequests'] as object)
  const yes = { [key]: { action: 'accept', content: { decision: 'approved' } } }
  await asked(at, 'tasks/update', { taskId, inputResponses: yes })
  return vi.waitFor(async () => {
    const found = await asked(at, 'tasks/get', { taskId })
    expect(found['status']).not.toBe('working')
    return found
  }, 60_000)
}

const DEPLOYED = { status: 'completed', result: { structuredContent: { result: { deployed: true } } } }

test(
  '[K-12] a task of an assistant survives kill -9 of the server between tools/call and tasks/get',
  { retry: 0 },
  async () => {
    const one = await instance(`file:${directory()}`, 'one')
    const { taskId } = await asked(one, 'tools/call', { name: 'ask', arguments: {} })
    await one.victim.kill()
    one.victim.start()
    await one.ready()
    expect(await answered(one, taskId)).toMatchObject(DEPLOYED)
  },
)

test('[K-12] with two instances, another one answers for a task whose instance was killed', { retry: 0 }, async () => {
  const redis = await startRedis()
  endings.push(() => redis.remove())
  const [one, two] = await Promise.all([instance(redis.url, 'one'), instance(redis.url, 'two')])
  const { taskId } = await asked(one, 'tools/call', { name: 'ask', arguments: {} })
  await one.victim.kill()
  expect(await answered(two, taskId)).toMatchObject(DEPLOYED)
})
