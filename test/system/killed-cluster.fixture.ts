import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../servers/free-port.ts'
import { shuffled } from './chance.fixture.ts'
import { Victim } from './victim.fixture.ts'

const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const WORKER = fileURLToPath(new URL('programs/worker.mjs', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('programs/blueprints', import.meta.url))
const CLIENT_TOKEN = 'kill-test-client-token'
const WORKER_TOKEN = 'kill-test-worker-token'
const LEASE_SECONDS = 3
const ORCHESTRATORS = ['one', 'two', 'three'] as const

/** The server that the orchestrators share. */
export interface StorageServer {
  readonly url: string
  kill(): Promise<void>
  start(): Promise<void>
}

/** How often each kind of victim is killed, and how much work runs meanwhile. */
export interface KillSizes {
  readonly jobs: number
  readonly inFlight: number
  readonly workers: number
  readonly oneOrchestrator: number
  readonly allOrchestrators: number
  readonly worker: number
  readonly storage: number
}

export interface KillReport {
  /** The id of each job, by its client's number. */
  readonly acknowledged: ReadonlyMap<number, string>
  /** From the end of the last fault to the end of the last job that had begun before it. */
  readonly recoveryMs: number
  readonly kills: Readonly<Record<Fault | WorkerFault, number>>
  /** Requests that had to be retried. */
  readonly retries: number
}

type Fault = 'oneOrchestrator' | 'allOrchestrators' | 'storage'
type WorkerFault = 'workerKilled' | 'workerStopped'

/** Three orchestrators on one storage, workers, and a client that retries until it gets a response. */
export class KilledCluster {
  readonly #server: StorageServer
  readonly #sizes: KillSizes
  readonly #chance: () => number
  readonly #orchestrators: { readonly victim: Victim; readonly url: string; readonly client: Client }[] = []
  #workers: readonly Victim[] = []
  readonly #kills = { oneOrchestrator: 0, allOrchestrators: 0, storage: 0, workerKilled: 0, workerStopped: 0 }
  readonly #acknowledged = new Map<number, string>()
  /** Jobs that have been acknowledged and have not ended. */
  readonly #open = new Set<number>()
  #retries = 0

  constructor(server: StorageServer, sizes: KillSizes, chance: () => number) {
    this.#server = server
    this.#sizes = sizes
    this.#chance = chance
  }

  async start(): Promise<void> {
    for (const id of ORCHESTRATORS) {
      const port = await freePort()
      const url = `http://127.0.0.1:${port}`
      const victim = new Victim([CLI, 'start'], {
        API_HOST: '127.0.0.1',
        API_PORT: String(port),
        STORAGE_URL: this.#server.url,
        INSTANCE_ID: id,
        BLUEPRINTS_DIR: BLUEPRINTS,
        CLIENT_TOKEN,
        WORKER_TOKEN,
        WORKER_LEASE_SECONDS: String(LEASE_SECONDS),
        LOG_LEVEL: 'error',
      })
      this.#orchestrators.push({ victim, url, client: createClient({ url, token: CLIENT_TOKEN }) })
      victim.start()
    }
    await this.#untilReady()
    this.#workers = Array.from({ length: this.#sizes.workers }, (_unused, index) => {
      const url = this.#orchestrators[index % ORCHESTRATORS.length]?.url
      return new Victim([WORKER], { ORCHESTRATOR_URL: url, WORKER_TOKEN, WORKER_ID: `worker-${index}` })
    })
    for (const worker of this.#workers) worker.start()
  }

  /** Stops everything as an operator does. Returns how each orchestrator ended. */
  async stop(): Promise<readonly (number | null)[]> {
    await Promise.all(this.#workers.map((worker) => worker.stop()))
    return Promise.all(this.#orchestrators.map(({ victim }) => victim.stop()))
  }

  /** Runs work and faults concurrently; resolves when all jobs have ended. */
  async run(): Promise<KillReport> {
    const troubled = Promise.all([this.#trouble(), this.#troubleWorkers()])
    const recovered = troubled.then(() => this.#untilEnded([...this.#open]))
    // On a slow machine there is enough work until the last fault is over.
    const remaining = Array.from({ length: this.#sizes.jobs }, (_unused, index) => index).toReversed()
    let isOver = false
    const lane = async (): Promise<void> => {
      for (;;) {
        const index = remaining.pop() ?? (isOver ? undefined : this.#nextExtra())
        if (index === undefined) return
        await this.#work(index)
      }
    }
    void troubled.finally(() => (isOver = true))
    const [recoveryMs] = await Promise.all([recovered, ...Array.from({ length: this.#sizes.inFlight }, lane)])
    return { acknowledged: this.#acknowledged, recoveryMs, kills: this.#kills, retries: this.#retries }
  }

  /** How long it takes until all of these have ended. */
  async #untilEnded(jobs: readonly number[]): Promise<number> {
    const begin = Date.now()
    while (jobs.some((index) => this.#open.has(index))) await pause(50)
    return Date.now() - begin
  }

  #extra = 0
  #nextExtra(): number {
    this.#extra += 1
    return this.#sizes.jobs + this.#extra
  }

  /** One job, from its creation to its end, whichever processes are killed meanwhile. */
  async #work(index: number): Promise<void> {
    const key = { idempotencyKey: `job-${index}` }
    const job = await this.#insist((client) => client.start('four_states', { value: index }, key))
    this.#acknowledged.set(index, job.id)
    this.#open.add(index)
    await this.#insist((client) => client.job(job.id).wait())
    this.#open.delete(index)
  }

  /** Tries one orchestrator after the other until one responds. */
  async #insist<T>(ask: (client: Client) => Promise<T>): Promise<T> {
    for (;;) {
      const one = this.#orchestrators[Math.floor(this.#chance() * ORCHESTRATORS.length)]
      if (one === undefined) throw new Error('There are no orchestrators.')
      try {
        return await ask(one.client)
      } catch {
        this.#retries += 1
        await pause(50)
      }
    }
  }

  async #trouble(): Promise<void> {
    const { oneOrchestrator, allOrchestrators, storage } = this.#sizes
    const plan: Fault[] = [
      ...times(oneOrchestrator, 'oneOrchestrator'),
      ...times(allOrchestrators, 'allOrchestrators'),
      ...times(storage, 'storage'),
    ]
    for (const fault of shuffled(plan, this.#chance)) {
      await pause(50 + this.#chance() * 450)
      await this.#cause(fault)
      this.#kills[fault] += 1
    }
    await this.#untilReady()
  }

  async #cause(fault: Fault): Promise<void> {
    if (fault === 'storage') {
      await this.#server.kill()
      await pause(this.#chance() * 500)
      await this.#server.start()
      return
    }
    const all = this.#orchestrators.map(({ victim }) => victim)
    const one = all[Math.floor(this.#chance() * all.length)]
    const victims = fault === 'allOrchestrators' || one === undefined ? all : [one]
    await Promise.all(victims.map((victim) => victim.kill()))
    for (const victim of victims) victim.start()
    if (fault === 'allOrchestrators') await this.#untilReady()
  }

  async #troubleWorkers(): Promise<void> {
    for (let kills = 0; kills < this.#sizes.worker; kills += 1) {
      await pause(50 + this.#chance() * 950)
      const worker = this.#workers[Math.floor(this.#chance() * this.#workers.length)]
      if (kills % 4 === 0) {
        // Longer than its leases: its messages after it wakes are too late.
        worker?.signal('SIGSTOP')
        await pause(LEASE_SECONDS * 1_000 + 1_500)
        worker?.signal('SIGCONT')
        this.#kills.workerStopped += 1
      } else {
        await worker?.kill()
        worker?.start()
        this.#kills.workerKilled += 1
      }
    }
  }

  async #untilReady(): Promise<void> {
    await Promise.all(
      this.#orchestrators.map(async ({ victim, url }) => {
        for (;;) {
          const answer = await fetch(`${url}/_public/ready`).catch(() => undefined)
          if (answer?.ok === true) return
          // A process that cannot reach its storage at the start may end: it is restarted, as by a supervisor.
          if (!victim.isRunning) victim.start()
          await pause(50)
        }
      }),
    )
  }
}

function times(count: number, fault: Fault): readonly Fault[] {
  return Array.from({ length: count }, () => fault)
}
