/** What automations and assistants rely on, with real servers that are killed without warning. */
import { createClient } from '@impresario/client'
import { createWorker } from '@impresario/worker'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

async function instance(storageUrl: string, id: string): Promise<Instance> {
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

test('[K-16] what a task used survives kill -9 of the server, and a report that was on its way counts once', async () => {
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
})

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

test('[K-12] a task of an assistant survives kill -9 of the server between tools/call and tasks/get', async () => {
  const one = await instance(`file:${directory()}`, 'one')
  const { taskId } = await asked(one, 'tools/call', { name: 'ask', arguments: {} })
  await one.victim.kill()
  one.victim.start()
  await one.ready()
  expect(await answered(one, taskId)).toMatchObject(DEPLOYED)
})

test('[K-12] with two instances, another one answers for a task whose instance was killed', async () => {
  const redis = await startRedis()
  endings.push(() => redis.remove())
  const [one, two] = await Promise.all([instance(redis.url, 'one'), instance(redis.url, 'two')])
  const { taskId } = await asked(one, 'tools/call', { name: 'ask', arguments: {} })
  await one.victim.kill()
  expect(await answered(two, taskId)).toMatchObject(DEPLOYED)
})
