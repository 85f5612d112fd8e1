import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
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

const reminder = blueprint('remind_customer', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) => actions.sleep('3d', { to: 'done' })),
  done: state.end(),
}))

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
  /** Of the page on which a person decides without an account. */
  readonly approvalPage: string
  close(): Promise<void>
}

/** A server with something on every page. */
export async function openStage(settings: Readonly<Record<string, unknown>> = {}): Promise<BrowserStage> {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-browser-'))
  const clientsConfigPath = join(directory, 'clients.toml')
  const tables = Object.entries(TOKENS).map(
    ([name, token]) => `[${name}]\ntoken = "${token}"\n${name === 'alpha' ? '' : `role = "${name}"\n`}`,
  )
  await writeFile(clientsConfigPath, tables.join('\n'))
  const server = createServer({
    blueprints: [publishVideo, catalogueVideo, order, reminder, hostile],
    settings: {
      storageUrl: 'memory:',
      historyDatabaseUri: 'memory:',
      apiHost: '127.0.0.1',
      apiPort: 0,
      clientsConfigPath,
      workerToken: 'worker-of-the-stage-5f',
      rateLimitingEnabled: false,
      filesDir: join(directory, 'files'),
      ...settings,
    },
    log: createLog({
      level: 'silent',
      format: 'text',
      timeZone: 'UTC',
      instance: 'stage',
      destination: process.stderr,
    }),
  })
  const { address } = await server.start()
  const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const studio = createStudio({ directory, connection: { transport: server.localTransport(), log: quiet } })
  await Promise.all(studio.map((worker) => worker.start()))
  const admin = createClient({ url: address, token: TOKENS.admin })
  const jobs = await fill(admin, address)
  return {
    server,
    address,
    admin,
    ...jobs,
    approvalPage: (await admin.approvals.get(jobs.askingJob)).url,
    close: async () => {
      await Promise.all(studio.map((worker) => worker.stop()))
      await server.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

type Jobs = Pick<BrowserStage, 'hostileJob' | 'askingJob' | 'stuckJob' | 'waitingJob' | 'finishedJob'>

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
  await createAutomation(address)
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
  }
}

async function settle(client: Client, id: string, status: string): Promise<void> {
  for await (const job of client.job(id).watch()) if (job.status === status) return
}

async function createAutomation(address: string): Promise<void> {
  const send = (path: string, body: unknown): Promise<Response> =>
    fetch(`${address}/api/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-client-token': TOKENS.admin },
      body: JSON.stringify(body),
    })
  const made = await send('automations', {
    title: 'Weekly report',
    timezone: 'Europe/Madrid',
    triggers: [{ cron: '0 9 * * 1' }],
    pipeline: [{ id: 'say', uses: 'log', with: { message: 'The report is ready.' } }],
  })
  if (!made.ok) throw new Error(await made.text())
  const { id } = (await made.json()) as { readonly id: string }
  await send(`automations/${id}/run`, {})
}
