/** Handlers that fail in ways that only a process can show: real servers, on each storage that outlives them. */
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { LIMITS } from '@impresario/protocol'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { freePort } from '../servers/free-port.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { startRedis } from '../servers/redis-server.ts'
import { Victim } from './victim.fixture.ts'

const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('programs/bad-handlers', import.meta.url))
const CLIENT_TOKEN = 'handlers-test-client-token'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

const STORAGES = {
  file: (directory: string) => Promise.resolve(`file:${join(directory, 'data')}`),
  redis: async () => {
    const server = await startRedis()
    endings.push(() => server.remove())
    return server.url
  },
  postgres: async () => {
    const server = await startPostgres()
    endings.push(() => server.stop())
    return server.url
  },
} as const

class Stage {
  readonly client: Client
  readonly victim: Victim
  readonly #url: string
  readonly #begunFile: string

  private constructor(url: string, victim: Victim, begunFile: string) {
    this.#url = url
    this.#begunFile = begunFile
    this.victim = victim
    this.client = createClient({ url, token: CLIENT_TOKEN })
  }

  static async open(storage: keyof typeof STORAGES, env: NodeJS.ProcessEnv = {}): Promise<Stage> {
    const directory = mkdtempSync(join(tmpdir(), 'impresario-handlers-'))
    endings.push(() => rmSync(directory, { recursive: true, force: true }))
    const port = await freePort()
    const begunFile = join(directory, 'begun')
    const victim = new Victim([CLI, 'start'], {
      API_HOST: '127.0.0.1',
      API_PORT: String(port),
      STORAGE_URL: await STORAGES[storage](directory),
      INSTANCE_ID: 'only',
      BLUEPRINTS_DIR: BLUEPRINTS,
      BEGUN_FILE: begunFile,
      JOB_MAX_RETRIES: '0',
      CLIENT_TOKEN,
      WORKER_TOKEN: 'handlers-test-worker-token',
      SHUTDOWN_DRAIN_SECONDS: '0',
      ...env,
    })
    endings.push(() => victim.kill())
    return new Stage(`http://127.0.0.1:${port}`, victim, begunFile)
  }

  async ready(): Promise<void> {
    for (;;) {
      const answer = await fetch(`${this.#url}/_public/ready`).catch(() => undefined)
      if (answer?.ok === true) return
      if (!this.victim.isRunning) throw new Error(`The server does not start: ${this.victim.output}`)
      await pause(25)
    }
  }

  async restart(): Promise<void> {
    await this.victim.kill()
    this.victim.start()
  }

  begun(name: string): number {
    const text = existsSync(this.#begunFile) ? readFileSync(this.#begunFile, 'utf8') : ''
    return text.split('\n').filter((line) => line === name).length
  }

  async untilBegun(name: string, times: number): Promise<void> {
    while (this.begun(name) < times) await pause(25)
  }

  /** Waits until it has ended or waits for a person. */
  async outcome(id: string): Promise<{ readonly status: string; readonly code?: string; readonly message?: string }> {
    for (;;) {
      const job = await this.client
        .job(id)
        .status()
        .catch(() => undefined)
      if (job !== undefined && ['finished', 'quarantined', 'failed'].includes(job.status)) {
        const { status, errorCode: code, errorMessage: message } = job
        return { status, ...(code === undefined ? {} : { code }), ...(message === undefined ? {} : { message }) }
      }
      await pause(25)
    }
  }
}

describe.each(Object.keys(STORAGES) as (keyof typeof STORAGES)[])('on %s', (storage) => {
  test('[C-11] what escapes from a handler fails its turn, and the process goes on', async () => {
    const stage = await Stage.open(storage)
    stage.victim.start()
    await stage.ready()
    const ids = new Map<string, string>()
    for (const name of ['stray', 'stray_late', 'timer', 'exits', 'good']) {
      ids.set(name, (await stage.client.start(name, {})).id)
    }
    const outcome = (name: string) => stage.outcome(ids.get(name) ?? '')
    expect(await outcome('stray')).toMatchObject({ status: 'quarantined', code: 'HANDLER_FAILED' })
    expect((await outcome('stray')).message).toContain('did not await was rejected: the audit log is gone')
    expect((await outcome('timer')).message).toContain('thrown in a timer')
    expect((await outcome('exits')).message).toContain('called process.exit(3)')
    expect(await outcome('stray_late')).toEqual({ status: 'finished' })
    expect(await outcome('good')).toEqual({ status: 'finished' })
    while (!/"blueprint":"stray_late","state":"act".*an error escaped from a handler/.test(stage.victim.output)) {
      await pause(25)
    }
    expect(await stage.victim.stop()).toBe(0)
  })

  test('[C-11] a handler that ends the process is given up after three times', async () => {
    const stage = await Stage.open(storage)
    stage.victim.start()
    await stage.ready()
    const { id: killer } = await stage.client.start('kills', {})
    await stage.victim.ended()
    for (let deaths = 1; deaths < LIMITS.turnBegunMax; deaths += 1) {
      stage.victim.start()
      await stage.victim.ended()
    }
    stage.victim.start()
    await stage.ready()
    const { id: good } = await stage.client.start('good', {})
    expect(await stage.outcome(good)).toEqual({ status: 'finished' })
    expect(await stage.outcome(killer)).toMatchObject({ status: 'quarantined', code: 'HANDLER_NEVER_ENDED' })
    expect(stage.begun('kills')).toBe(LIMITS.turnBegunMax)
    expect(await stage.victim.stop()).toBe(0)
  })

  test('[C-11] an endless loop holds up one start, and no more', async () => {
    const stage = await Stage.open(storage)
    stage.victim.start()
    await stage.ready()
    const { id } = await stage.client.start('spins', {})
    await stage.untilBegun('spins', 1)
    await stage.restart()
    expect((await stage.outcome(id)).message).toContain('held up the whole process for 5 s and was stopped')
    const { id: good } = await stage.client.start('good', {})
    expect(await stage.outcome(good)).toEqual({ status: 'finished' })
    expect(stage.begun('spins')).toBe(2)
    expect(await stage.victim.stop()).toBe(0)
  })
})

// The rest is the same on every storage: the count of runs decides.

test('[C-11] an endless loop after a wait ends the process by itself, and is given up after three times', async () => {
  const stage = await Stage.open('file', { STALL_LIMIT_SECONDS: '2' })
  stage.victim.start()
  await stage.ready()
  const { id } = await stage.client.start('spins_later', {})
  for (let times = 1; times <= LIMITS.turnBegunMax; times += 1) {
    await stage.victim.ended()
    expect(stage.victim.output).toContain('EVENT_LOOP_STALLED')
    stage.victim.start()
  }
  expect(await stage.outcome(id)).toMatchObject({ status: 'quarantined', code: 'HANDLER_NEVER_ENDED' })
  expect(stage.begun('spins_later')).toBe(LIMITS.turnBegunMax)
})

test('[C-11] a handler that uses up all memory is given up after three times', async () => {
  const stage = await Stage.open('file', { NODE_OPTIONS: '--max-old-space-size=96' })
  stage.victim.start()
  await stage.ready()
  const { id } = await stage.client.start('swells', {})
  await stage.victim.ended()
  for (let deaths = 1; deaths < LIMITS.turnBegunMax; deaths += 1) {
    stage.victim.start()
    await stage.victim.ended()
  }
  stage.victim.start()
  expect(await stage.outcome(id)).toMatchObject({ status: 'quarantined', code: 'HANDLER_NEVER_ENDED' })
})
