/**
 * Proves that an acknowledged job is never lost, with real processes that are killed at random.
 *
 * SIGKILL does not drop the page cache, so this proves recovery, not fsync: see the storage's own tests for a write
 * that fails.
 */
import { createClient } from '@impresario/client'
import { openEmbeddedStorage } from '@impresario/storage-embedded'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../servers/free-port.ts'
import { chanceOf } from './chance.fixture.ts'
import { Victim } from './victim.fixture.ts'

const JOBS = 2_000
const KILLS_MIN = 20
const CLIENT_TOKEN = 'kill-test-client-token'
const WORKER_TOKEN = 'kill-test-worker-token'
const SEED = Number(process.env['KILL_SEED'] ?? Date.now() % 1_000_000)

const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const WORKER = fileURLToPath(new URL('programs/worker.mjs', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('programs/blueprints', import.meta.url))

const directory = mkdtempSync(join(tmpdir(), 'impresario-kill-'))
let server: Victim
let workers: Victim[]
let url = ''

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

async function untilReady(): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/_public/ready`).catch(() => undefined)
    if (answer?.ok === true) return
    if (!server.isRunning) throw new Error(`The server does not start: ${server.output}`)
    await pause(25)
  }
}

beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  server = new Victim([CLI, 'start'], {
    API_HOST: '127.0.0.1',
    API_PORT: String(port),
    STORAGE_URL: `file:${directory}`,
    BLUEPRINTS_DIR: BLUEPRINTS,
    CLIENT_TOKEN,
    WORKER_TOKEN,
    WORKER_LEASE_SECONDS: '3',
    LOG_LEVEL: 'error',
  })
  workers = ['one', 'two'].map(
    (id) => new Victim([WORKER], { ORCHESTRATOR_URL: url, WORKER_TOKEN, WORKER_ID: `worker-${id}` }),
  )
  server.start()
  await untilReady()
  for (const worker of workers) worker.start()
})

afterAll(async () => {
  await Promise.all([...workers, server].map((victim) => victim.stop()))
  rmSync(directory, { recursive: true, force: true })
})

/** A client that retries each request until it gets a response. Returns what was acknowledged. */
async function feed(acknowledged: Map<number, string>): Promise<void> {
  const client = createClient({ url, token: CLIENT_TOKEN })
  const remaining = Array.from({ length: JOBS }, (_, index) => index)
  const lane = async (): Promise<void> => {
    for (let index = remaining.pop(); index !== undefined; index = remaining.pop()) {
      for (;;) {
        const job = await client
          .start('four_states', { value: index }, { idempotencyKey: `job-${index}` })
          .catch(() => undefined)
        if (job !== undefined) {
          acknowledged.set(index, job.id)
          break
        }
        await pause(20)
      }
    }
  }
  await Promise.all(Array.from({ length: 20 }, lane))
}

async function ended(ids: readonly string[]): Promise<number> {
  const client = createClient({ url, token: CLIENT_TOKEN })
  let count = 0
  for await (const job of client.list({
    status: ['finished', 'failed', 'cancelled', 'error', 'quarantined'],
    limit: 100,
  })) {
    if (ids.includes(job.id)) count += 1
  }
  return count
}

test(
  '[C-09] [C-01] acknowledged jobs end exactly once while server and workers are killed at random',
  // It takes a minute and a half; only a run that hangs takes this long, even on a busy machine.
  { timeout: 900_000, retry: 0 },
  async () => {
    const chance = chanceOf(SEED)
    const acknowledged = new Map<number, string>()
    const feeding = feed(acknowledged)
    let kills = 0
    while (kills < KILLS_MIN || acknowledged.size < JOBS) {
      await pause(50 + Math.floor(chance() * 600))
      const victim = [server, server, ...workers][Math.floor(chance() * 4)] ?? server
      await victim.kill()
      kills += 1
      victim.start()
      if (victim === server) await untilReady()
    }
    await feeding

    const ids = [...acknowledged.values()]
    await expect.poll(() => ended(ids).catch(() => 0), { timeout: 600_000, interval: 500 }).toBe(JOBS)
    await Promise.all(workers.map((worker) => worker.stop()))
    expect(await server.stop()).toBe(0)

    const storage = openEmbeddedStorage({ directory })
    try {
      expect(storage.integrityCheck()).toEqual([])
      const stored = await storage.list('job', { limit: JOBS * 2 })
      expect(stored).toHaveLength(JOBS) // nothing that nobody asked for, nothing twice
      for (const [index, id] of acknowledged) {
        const job = (await storage.read('job', id))?.value
        expect({ seed: SEED, index, status: job?.status, sum: job?.stateHistory['sum'] }).toEqual({
          seed: SEED,
          index,
          status: 'finished',
          sum: index * 2 * 6,
        })
        expect(job?.trail.filter(({ event }) => event === 'job_finished')).toHaveLength(1)
      }
    } finally {
      await storage.close()
    }
    expect(server.deaths).toBeGreaterThan(0)
    expect(kills).toBeGreaterThanOrEqual(KILLS_MIN)
    console.log(`${kills} kills (${server.deaths} of the server), ${JOBS} jobs, seed ${SEED}`)
  },
)
