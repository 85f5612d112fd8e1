import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createReceiver } from 'node:http'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import type { Blueprint } from '@impresario/core'
import { ClientDocuments, loadDocumentsConfig } from '@impresario/documents'
import { catalogueVideo, createStudio, publishVideo } from '@impresario/examples'
import { createLog, createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { z } from 'zod'

export const TOKENS = {
  admin: 'token-of-admin-91b2',
  alpha: 'token-of-alpha-4d1f',
  viewer: 'token-of-viewer-0c3e',
} as const

const order = blueprint(
  'fulfil_order',
  {
    start: 'check',
    handlerAttemptsMax: 1,
    input: z.looseObject({
      order: z.string().describe('Number of the order.'),
      amount: z.number().min(0).default(100),
      country: z.enum(['DE', 'ES', 'RU', 'US']).default('DE'),
      express: z.boolean().default(false),
      mended: z.boolean().optional(),
    }),
  },
  (state) => ({
    check: state.handler(({ initialData, log }, actions) => {
      log.info('Checked the order.', { country: initialData.country })
      if (initialData.amount > 10_000) log.warn('This is a large order.')
      if (initialData.country === 'US' && initialData.mended !== true) {
        throw new Error(`The tax service knows no rate for order "${initialData.order}".`)
      }
      return initialData.amount > 1_000 ? actions.transitionTo('approve') : actions.transitionTo('pack')
    }),
    approve: state.handler(({ initialData }, actions) =>
      actions.awaitHumanApproval({
        message: `Ship order ${initialData.order} for ${initialData.amount} € before it is paid?`,
        transitions: { approved: 'pack', rejected: 'refused' },
        expires: '2d',
      }),
    ),
    pack: state.handler((_context, actions) =>
      actions.dispatchTask({
        type: 'warehouse.pack',
        resourceRequirements: { gpu: { vramGb: 24 } },
        transitions: { success: 'shipped' },
      }),
    ),
    shipped: state.end(),
    refused: state.end({ outcome: 'failed' }),
  }),
)

/** Asks for data with the decision. */
export const refund = blueprint('refund', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({
      message: 'How much shall we pay back, and how?',
      transitions: { approved: 'done', rejected: 'done' },
      form: {
        type: 'object',
        properties: {
          amount: { type: 'number', minimum: 1, maximum: 500, title: 'Amount', description: 'In euros.' },
          way: { enum: ['card', 'bank transfer', 'voucher'], title: 'Way' },
          account: { type: 'string', title: 'Account', pattern: '^[A-Z]{2}[0-9]{4,}$' },
          told: { type: 'boolean', title: 'The customer knows' },
          reasons: { type: 'array', items: { enum: ['damaged', 'late', 'wrong item'] }, title: 'Reasons' },
        },
        required: ['amount', 'way'],
      },
    }),
  ),
  done: state.end(),
}))

const reminder = blueprint('remind_customer', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) => actions.sleep('3d', { to: 'done' })),
  done: state.end(),
}))

/** What schedules start. */
const tidyUp = blueprint('tidy_up', { start: 'done' }, (state) => ({ done: state.end() }))

/** Texts that break pages which trust what they show. */
export const HOSTILE = {
  html: '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script>',
  bidi: '\u202Egnirts\u202C and \u2067more\u2069',
  long: 'x'.repeat(10_000),
  huge: 1e308,
} as const

const hostile = blueprint('hostile', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({
      message: HOSTILE.html + HOSTILE.bidi,
      transitions: { approved: 'done', rejected: 'done' },
    }),
  ),
  done: state.end(),
}))

export interface BrowserStage {
  readonly server: Server
  readonly address: string
  readonly admin: Client
  readonly hostileJob: string
  readonly askingJob: string
  readonly stuckJob: string
  readonly waitingJob: string
  readonly finishedJob: string
  readonly automation: string
  /** The run of the automation, which is a job too. */
  readonly run: string
  /** The id of an agent with a token. */
  readonly agent: string
  /** Of the history: a task of a worker that ended. */
  readonly event: string
  /** Of the audit log: the start of a run. */
  readonly auditEntry: string
  /** Of an event that automations heard. */
  readonly published: string
  /** Of a webhook message that arrived. */
  readonly delivery: string
  /** Gets webhooks. */
  readonly endpoint: string
  /** Has answered that it wants no more of them. */
  readonly disabledEndpoint: string
  /** Of the page on which a person decides without an account. */
  readonly approvalPage: string
  close(): Promise<void>
}

/** A server with something on every page. */
export async function openStage(
  settings: Readonly<Record<string, unknown>> = {},
  more: readonly Blueprint[] = [],
): Promise<BrowserStage> {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-browser-'))
  const clientsConfigPath = join(directory, 'clients.toml')
  const tables = Object.entries(TOKENS).map(
    ([name, token]) => `[${name}]\ntoken = "${token}"\n${name === 'alpha' ? '' : `role = "${name}"\n`}`,
  )
  await writeFile(clientsConfigPath, tables.join('\n'))
  const schedulesConfigPath = join(directory, 'schedules.toml')
  await writeFile(schedulesConfigPath, SCHEDULES)
  const documents = await openDocuments(directory)
  const server = createServer({
    blueprints: [publishVideo, catalogueVideo, order, refund, reminder, tidyUp, hostile, documents.blueprint, ...more],
    settings: {
      storageUrl: 'memory:',
      historyDatabaseUri: 'memory:',
      apiHost: '127.0.0.1',
      apiPort: 0,
      clientsConfigPath,
      schedulesConfigPath,
      workerToken: 'worker-of-the-stage-5f',
      rateLimitingEnabled: false,
      filesDir: join(directory, 'files'),
      webhookAllowHttp: true,
      webhookAllowPrivate: true,
      webhookAllowedPorts: '1024-65535',
      ...settings,
    },
    documents,
    log: createLog({
      level: 'silent',
      format: 'text',
      timeZone: 'UTC',
      instance: 'stage',
      destination: process.stderr,
    }),
  })
  const { address } = await server.start()
  await documents.start(server)
  const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const studio = createStudio({ directory, connection: { transport: server.localTransport(), log: quiet } })
  await Promise.all(studio.map((worker) => worker.start()))
  const admin = createClient({ url: address, token: TOKENS.admin })
  const jobs = await fill(admin, address)
  const agent = await createAgent(admin)
  const receiver = await openReceiver()
  return {
    server,
    address,
    admin,
    ...jobs,
    agent,
    ...(await entriesOf(admin, address)),
    ...(await messagesOf(admin, urlOf(receiver))),
    approvalPage: (await admin.approvals.get(jobs.askingJob)).url,
    close: async () => {
      await Promise.all(studio.map((worker) => worker.stop()))
      await documents.stop()
      await server.stop()
      receiver.closeAllConnections()
      receiver.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const SCHEDULES = `
[tidy]
blueprint = "tidy_up"
interval_seconds = 86400

[report]
blueprint = "tidy_up"
weekly_days = ["mon", "fri"]
time = "07:05"
timezone = "Europe/Madrid"
misfire = "skip"
client = "alpha"

[off]
blueprint = "tidy_up"
daily_at = "03:30"
enabled = false
`

const PAPERS: Readonly<Record<string, string>> = {
  'harbour-report.txt': 'The harbour at dawn: five ships came in, and the crane on the north pier was mended.',
  'invoice-2001.md': '# Invoice B-2001\n\nTwo crates for the harbour office, to be paid within a month.',
  'broken.pdf': 'This is no PDF.',
}

/** The documents of the admin: some that can be found, and one that cannot be read. */
async function openDocuments(directory: string): Promise<ClientDocuments> {
  const folder = join(directory, 'papers')
  await mkdir(folder)
  for (const [name, text] of Object.entries(PAPERS)) await writeFile(join(folder, name), text)
  const config = join(directory, 'documents.yaml')
  await writeFile(config, `clients:\n  admin: { folders: [${folder}] }\n`)
  return new ClientDocuments({ directory: join(directory, 'index'), config: loadDocumentsConfig(config) })
}

type Jobs = Pick<
  BrowserStage,
  'hostileJob' | 'askingJob' | 'stuckJob' | 'waitingJob' | 'finishedJob' | 'automation' | 'run'
>

async function fill(admin: Client, address: string): Promise<Jobs> {
  const titles = ['First light', 'Harbour at dawn', 'Night train', 'Salt flats', 'Paper boats', 'Aurora']
  const videos = await Promise.all(titles.map((title) => admin.start(publishVideo, { title, scenes: 3 })))
  const orders: string[] = []
  for (let number = 1; number <= 7; number += 1) {
    const country = number % 2 === 0 ? 'US' : 'DE'
    orders.push((await admin.start(order, { order: `A-10${number}`, amount: number * 40, country })).id)
  }
  const asking = await admin.start(order, { order: 'B-2001', amount: 4_200 })
  await admin.start(order, { order: 'B-2002', amount: 18_000 })
  await admin.start(reminder, {})
  const { html, bidi, long, huge } = HOSTILE
  const bad = await admin.start(hostile, {
    [html]: html,
    bidi,
    long,
    huge,
    list: Array.from({ length: 2_000 }, () => 1),
  })
  const automation = await createAutomation(address)
  for (const [index, video] of videos.entries()) {
    await settle(admin, video.id, 'waiting_for_human')
    if (index > 3) continue
    await admin.approve(video.id, index === 3 ? 'rejected' : 'approved')
    await settle(admin, video.id, index === 3 ? 'failed' : 'finished')
  }
  await settle(admin, orders[1] ?? '', 'quarantined')
  await settle(admin, asking.id, 'waiting_for_human')
  await settle(admin, bad.id, 'waiting_for_human')
  await admin.job(asking.id).files.upload('in/invoice.pdf', new TextEncoder().encode('An invoice.'))
  const cancelled = await admin.start(reminder, {})
  await admin.cancel(cancelled.id, 'The customer answered.')
  return {
    hostileJob: bad.id,
    askingJob: asking.id,
    stuckJob: orders[1] ?? '',
    waitingJob: orders[0] ?? '',
    finishedJob: videos[0]?.id ?? '',
    ...automation,
  }
}

async function createAgent(admin: Client): Promise<string> {
  const { id } = await admin.agents.create({
    name: 'reporter',
    description: 'Writes the weekly report and asks before it is sent.',
    scopes: ['automations:*', 'runs:read', 'jobs:read'],
    onBehalfOf: 'maria@example.org',
  })
  await admin.agents.createToken(id, { name: 'laptop' })
  return id
}

/** The history is written a moment after the jobs. */
async function entriesOf(admin: Client, address: string): Promise<Pick<BrowserStage, 'event' | 'auditEntry'>> {
  const [started] = await admin.audit.list({ action: 'run.started' }).all()
  for (;;) {
    const headers = { 'x-client-token': TOKENS.admin }
    const found = await fetch(`${address}/api/v1/history?event=task_finished&limit=1`, { headers })
    const [event] = (await found.json()) as readonly { readonly event_id: string }[]
    if (event !== undefined) return { event: event.event_id, auditEntry: started?.id ?? '' }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Takes messages under `/hook`, and says under `/gone` that it wants no more. */
async function openReceiver(): Promise<HttpServer> {
  const receiver = createReceiver((request, reply) => {
    request.resume().on('end', () => reply.writeHead(request.url?.startsWith('/gone') === true ? 410 : 200).end())
  })
  await new Promise<void>((resolve) => {
    receiver.listen(0, '127.0.0.1', resolve)
  })
  return receiver
}

function urlOf(receiver: HttpServer): string {
  return `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
}

/** A message that arrived and one that was refused for good, and an event for automations. */
async function messagesOf(
  admin: Client,
  url: string,
): Promise<Pick<BrowserStage, 'published' | 'delivery' | 'endpoint' | 'disabledEndpoint'>> {
  for (const path of ['hook', 'gone']) {
    const { id } = await admin.start(reminder, {}, { webhookUrl: `${url}/${path}` })
    await admin.cancel(id, 'The customer called.')
  }
  const { id: published } = await admin.events.publish('order.paid', { order: 'A-101' })
  for (;;) {
    const [delivery] = await admin.webhooks.deliveries({ status: 'delivered' }).all()
    const endpoints = await admin.webhooks.endpoints().all()
    const disabled = endpoints.find(({ status }) => status === 'disabled')
    if (delivery !== undefined && disabled !== undefined) {
      return { published, delivery: delivery.id, endpoint: delivery.endpointId, disabledEndpoint: disabled.id }
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function settle(client: Client, id: string, status: string): Promise<void> {
  for await (const job of client.job(id).watch()) if (job.status === status) return
}

async function createAutomation(address: string): Promise<Pick<Jobs, 'automation' | 'run'>> {
  const send = async <T>(path: string, body: unknown): Promise<T> => {
    const made = await fetch(`${address}/api/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-client-token': TOKENS.admin },
      body: JSON.stringify(body),
    })
    if (!made.ok) throw new Error(await made.text())
    return (await made.json()) as T
  }
  const { id } = await send<{ readonly id: string }>('automations', {
    title: 'Weekly report',
    timezone: 'Europe/Madrid',
    triggers: [{ cron: '0 9 * * 1' }],
    pipeline: [{ id: 'say', uses: 'log', with: { message: 'The report is ready.' } }],
  })
  const { run_id: run } = await send<{ readonly run_id: string }>(`automations/${id}/run`, {})
  return { automation: id, run }
}
