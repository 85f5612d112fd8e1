import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'impresario/client'
import type { Client, JobHandle, ListedJob } from 'impresario/client'
import { createServer } from 'impresario/server'
import type { Server } from 'impresario/server'
import { TaskAborted } from 'impresario/worker'
import type { Worker } from 'impresario/worker'
import { PROFILE, printOrder, printRun, proofPrint, stockCount } from './blueprints.ts'
import { Receiver } from './receiver.ts'
import type { ChildFindings, Findings, OrderFindings, Reputations, Visit } from './report.ts'
import { createCrew } from './workers.ts'
import type { Assignment } from './workers.ts'

type Say = (line: string) => unknown

/** Below this, tim asks more for his reputation than ines does: 0.020 / 0.8 = 0.025. */
const REPUTATION_FALLEN = 0.8
/** Nothing here takes long. Should it, then something is broken, and it is better to say so than to wait. */
const PATIENCE_MS = 25_000

/** Opens the shop, serves two orders, closes it, and gives what was found. Nothing stays behind. */
export async function runShowcase(say: Say): Promise<Findings> {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-showcase-'))
  const receiver = new Receiver()
  const closing: (() => Promise<unknown>)[] = [
    () => rm(directory, { recursive: true, force: true }),
    () => receiver.stop(),
  ]
  try {
    await receiver.start()
    const schedules = join(directory, 'schedules.toml')
    await writeFile(schedules, schedulesFile(receiver.url))
    const tokens = { clientToken: randomToken(), workerToken: randomToken() }
    const server = openServer(schedules, receiver.port, tokens)
    closing.push(() => server.stop())
    const { address } = await server.start()
    const client = createClient({ url: address, token: tokens.clientToken })
    const shop = new Showcase({ client, receiver, say })
    await shop.agreeOnSecret()
    const crew = shop.hire(server, address, tokens.workerToken)
    closing.push(() => Promise.all(crew.map((worker) => worker.stop())))
    return await shop.run(crew)
  } finally {
    for (const close of closing.toReversed()) await close()
  }
}

function randomToken(): string {
  return randomBytes(24).toString('base64url')
}

/** The first counts the paper every hour, beginning now. The second is for half a day from now, so it must not fire. */
function schedulesFile(webhookUrl: string): string {
  const later = new Date(Date.now() + 12 * 3_600_000).toISOString().slice(11, 16)
  return `
[hourly_stock_count]
blueprint = "stock_count"
interval_seconds = 3600
input_data = { store = "cellar" }
client = "default"
webhook_url = "${webhookUrl}"

[later_stock_count]
blueprint = "stock_count"
daily_at = "${later}"
timezone = "UTC"
input_data = { store = "attic" }
client = "default"
`
}

function openServer(
  schedulesConfigPath: string,
  webhookPort: number,
  tokens: { readonly clientToken: string; readonly workerToken: string },
): Server {
  return createServer({
    blueprints: [printOrder, proofPrint, printRun, stockCount],
    settings: {
      ...tokens,
      apiHost: '127.0.0.1',
      apiPort: 0,
      storageUrl: 'memory:',
      logLevel: 'error',
      logFormat: 'text',
      schedulesConfigPath,
      // The receiver is on this machine. Without these three, messages go only to https and the open Internet.
      webhookAllowHttp: true,
      webhookAllowPrivate: true,
      webhookAllowedPorts: String(webhookPort),
      // Reputations are usually worked out once an hour. Here somebody is watching.
      reputationIntervalSeconds: 1,
      reputationFlushSeconds: 0.1,
      // Who was chosen keeps the task, however slow this machine is.
      workerPickupSeconds: 60,
    },
  })
}

class Showcase {
  readonly #client: Client
  readonly #receiver: Receiver
  readonly #say: Say
  readonly #assignments: Assignment[] = []
  #rackStopped: (reason: unknown) => void = () => {}
  readonly #rack = new Promise<unknown>((resolve) => {
    this.#rackStopped = resolve
  })

  constructor({ client, receiver, say }: { client: Client; receiver: Receiver; say: Say }) {
    this.#client = client
    this.#receiver = receiver
    this.#say = say
  }

  /** Before the first message, so that the receiver can check all of them. */
  async agreeOnSecret(): Promise<void> {
    const { id } = await this.#client.webhooks.declare(this.#receiver.url)
    const { secret } = await this.#client.webhooks.secret(id)
    this.#receiver.shareSecret(secret)
  }

  hire(server: Server, url: string, token: string): readonly Worker[] {
    return createCrew({
      inside: { transport: server.localTransport() },
      outside: { url, token },
      tell: (worker, what) => this.#say(`  ${worker.padEnd(12)}${what}`),
      onAssigned: (assignment) => this.#assignments.push(assignment),
      onRackStopped: (reason) => this.#rackStopped(reason),
    })
  }

  async run(crew: readonly Worker[]): Promise<Findings> {
    await this.#openShop(crew)
    const before = await this.#reputations()
    const { poster, rackStopped, approval } = await this.#servePoster()
    const after = await this.#reputationFalls()
    const flyer = await this.#serveFlyer()
    await this.#forge()
    const { verified, refused } = this.#receiver
    return {
      poster,
      flyer,
      rackStopped,
      approval,
      scheduled: await this.#scheduled(),
      reputations: { before, after },
      webhooks: { verified: verified.map(({ event, job_id: jobId }) => ({ event, jobId })), refused },
    }
  }

  async #openShop(crew: readonly Worker[]): Promise<void> {
    this.#say('The print shop opens. Its schedule says "count the paper every hour", so there is a job already.')
    const early = await this.#waitFor('the job of the schedule', async () => {
      const jobs = await this.#stockCounts()
      return jobs.find(({ status }) => status === 'waiting_for_worker')
    })
    this.#say(
      'Nobody is at work yet, so the job waits. Now they come: lena and otto of the studio (in this process), two',
    )
    this.#say('presses (by HTTP and WebSocket), and the inspectors ines and tim (by HTTP). tim is cheap, and new.')
    this.#say('')
    await Promise.all(crew.map((worker) => worker.start()))
    await this.#waitFor('the colour profile', async () => {
      const lena = (await this.#client.workers()).find(({ workerId: id }) => id === 'lena')
      return Array.isArray(lena?.['hotCache']) && lena['hotCache'].includes(PROFILE) ? true : undefined
    })
    await this.#heard('job_finished', early.id)
  }

  async #servePoster(): Promise<Pick<Findings, 'poster' | 'rackStopped' | 'approval'>> {
    const title = 'Summer festival'
    this.#say('')
    this.#say('An order comes in: 900 festival posters. That is a large one, so the file is checked first.')
    this.#say('')
    const input = { title, file: 'poster.pdf', dpi: 150, copies: 900 }
    const order = await this.#client.start(printOrder, input, { webhookUrl: this.#receiver.url })
    await this.#heard('approval_requested', order.id)
    const reason = await this.#rack
    const approval = await this.#approve(order)
    const result = await order.result()
    await this.#heard('job_finished', order.id)
    return {
      poster: await this.#orderFindings(order, result),
      approval,
      rackStopped: reason instanceof TaskAborted ? reason.reason : String(reason),
    }
  }

  /** The customer gets a link that decides this one question. It works once, and needs no token. */
  async #approve(order: JobHandle): Promise<Findings['approval']> {
    const { message, decisionUrls: urls } = await order.approval()
    const press = async (): Promise<number> => {
      const response = await fetch(urls['approved'] ?? '', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ decision: 'approved', comment: 'Lovely!' }),
      })
      await response.body?.cancel()
      return response.status
    }
    this.#say('')
    this.#say(`The customer is asked: ${message}`)
    const first = await press()
    const second = await press()
    this.#say(`The customer says yes (${first}). The same link a second time changes nothing (${second}).`)
    this.#say('')
    return { message, first, second }
  }

  async #reputationFalls(): Promise<Reputations> {
    this.#say('')
    this.#say('Half of the sheets that tim got were ruined, and ines had to do them again. The shop keeps count.')
    const fallen = await this.#waitFor("tim's reputation to fall", async () => {
      const now = await this.#reputations()
      return now.tim < REPUTATION_FALLEN ? now : undefined
    })
    this.#say(`His reputation is ${fallen.tim.toFixed(2)} now, and for that he is no longer good value.`)
    return fallen
  }

  async #serveFlyer(): Promise<OrderFindings> {
    this.#say('')
    this.#say('The next order: 90 flyers. Small ones with a good file go straight to the presses.')
    this.#say('')
    const input = { title: 'Cake sale', file: 'flyer.pdf', dpi: 300, copies: 90 }
    const order = await this.#client.start(printOrder, input, { webhookUrl: this.#receiver.url })
    const result = await order.result()
    await this.#heard('job_finished', order.id)
    return this.#orderFindings(order, result)
  }

  /** Somebody else sends a message of the same look, without knowing the secret. */
  async #forge(): Promise<void> {
    const response = await fetch(this.#receiver.url, {
      method: 'POST',
      headers: {
        'webhook-id': 'msg_forged',
        'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
        'webhook-signature': `v1,${randomBytes(32).toString('base64')}`,
      },
      body: JSON.stringify({ event: 'job_finished', job_id: 'none', status: 'finished' }),
    })
    await response.body?.cancel()
  }

  async #orderFindings(order: JobHandle, result: OrderFindings['result']): Promise<OrderFindings> {
    const { status } = await order.status()
    const family = [order.id]
    const children: Record<string, ChildFindings> = {}
    for await (const job of this.#client.list()) {
      if (job.parentJobId !== order.id) continue
      family.push(job.id)
      children[job.blueprintName] = { visits: await this.#visits(job.id), events: await this.#events(job.id) }
    }
    const assignments = this.#assignments.filter(({ jobId }) => family.includes(jobId))
    return { id: order.id, status, result, visits: await this.#visits(order.id), children, assignments }
  }

  /** What workers have told a job. */
  async #events(jobId: string): Promise<readonly string[]> {
    const events: string[] = []
    for await (const { eventType: event } of this.#client.job(jobId).history()) {
      if (event.startsWith('worker_event:')) events.push(event.replace('worker_event:', ''))
    }
    return events
  }

  /** Which states a job went through, by its history. */
  async #visits(jobId: string): Promise<readonly Visit[]> {
    const visits: Visit[] = []
    let begunAt: number | undefined
    for await (const { eventType: event, state, timestamp } of this.#client.job(jobId).history()) {
      begunAt ??= timestamp
      const isVisit = event === 'job_created' || event === 'state_started'
      if (state !== null && isVisit) visits.push({ state, afterSeconds: timestamp - begunAt })
    }
    return visits
  }

  async #stockCounts(): Promise<readonly ListedJob[]> {
    const jobs: ListedJob[] = []
    for await (const job of this.#client.list({ blueprint: stockCount.name })) jobs.push(job)
    return jobs
  }

  async #scheduled(): Promise<Findings['scheduled']> {
    const jobs = await this.#stockCounts()
    return jobs.map(({ metadata, status, result }) => ({ schedule: nameIn(metadata?.['schedule']), status, result }))
  }

  async #reputations(): Promise<Reputations> {
    const workers = await this.#client.workers()
    const of = (name: string): number => Number(workers.find(({ workerId: id }) => id === name)?.['reputation'])
    return { tim: of('tim'), ines: of('ines') }
  }

  /** The receiver has been told of it, and believes it. */
  async #heard(event: string, jobId: string): Promise<void> {
    await this.#waitFor(`the webhook ${event}`, async () =>
      this.#receiver.verified.find((one) => one.event === event && one.job_id === jobId),
    )
  }

  async #waitFor<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const endsAt = Date.now() + PATIENCE_MS
    for (;;) {
      const found = await look()
      if (found !== undefined) return found
      if (Date.now() > endsAt) throw new Error(`Waited too long for ${what}.`)
      await sleep(50)
    }
  }
}

function nameIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
