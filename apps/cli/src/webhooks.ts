import { stringifyExact } from '@impresario/client'
import type { Client, Delivery, WebhookEndpoint, WholeDelivery } from '@impresario/client'
import { COMMAND, EXIT } from './failure.ts'
import { paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts, table } from './table.ts'
import { ago, localTime, nowSeconds, span, until } from './time.ts'

export interface DeliveryOptions extends GlobalOptions {
  readonly job?: string
  readonly event?: string
  readonly status?: Delivery['status']
  readonly owner?: string
  readonly limit: number
}

const PAGE = 100

export function listDeliveries(options: DeliveryOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { job: jobId, event, status, owner, limit } = options
    const query = { jobId, event, status, owner, limit: Math.min(limit, PAGE) }
    const deliveries = await client.webhooks.deliveries(query).all(limit)
    if (screen.isJson) printJson(screen, deliveries)
    else screen.out(deliveries.length === 0 ? 'There is no such message.' : deliveryTable(screen, deliveries))
    return EXIT.ok
  })
}

function deliveryTable(screen: Screen, deliveries: readonly Delivery[]): string {
  const now = nowSeconds()
  return table(screen, deliveries, [
    { title: 'message', cell: (one) => one.id },
    { title: 'event', cell: (one) => one.event },
    { title: 'status', cell: (one) => paintStatus(screen, one.status) },
    { title: 'tries', cell: (one) => String(one.attempts.length), align: 'right' },
    { title: 'answer', cell: (one) => answerOf(one), align: 'right' },
    { title: 'created', cell: (one) => ago(one.createdAt, now), align: 'right' },
    {
      title: 'next',
      cell: (one) => (one.nextAttemptAt === null ? '' : until(one.nextAttemptAt, now)),
      align: 'right',
    },
    { title: 'to', cell: (one) => one.url },
  ])
}

function answerOf({ attempts }: Delivery): string {
  const last = attempts.at(-1)
  return last === undefined ? '' : String(last.status ?? '–')
}

export function showDelivery(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const delivery = await client.webhooks.delivery(id)
    if (screen.isJson) printJson(screen, delivery)
    else screen.out(deliveryPage(screen, delivery))
    return EXIT.ok
  })
}

function deliveryPage(screen: Screen, delivery: WholeDelivery): string {
  const now = nowSeconds()
  const attempts = table(screen, delivery.attempts, [
    { title: 'tried', cell: (one) => localTime(one.at) },
    { title: 'took', cell: (one) => span(one.duration), align: 'right' },
    { title: 'answer', cell: (one) => String(one.status ?? '–'), align: 'right' },
    { title: 'error', cell: (one) => one.error ?? '' },
  ])
  return [
    facts(screen, [
      ['message', delivery.id],
      ['job', delivery.jobId],
      ['event', delivery.event],
      ['to', delivery.url],
      ['endpoint', delivery.endpointId],
      ['status', paintStatus(screen, delivery.status)],
      ['created', ago(delivery.createdAt, now)],
      ['next try', delivery.nextAttemptAt === null ? undefined : until(delivery.nextAttemptAt, now)],
      ['note', delivery.note ?? undefined],
    ]),
    ...(delivery.attempts.length === 0 ? [] : [attempts]),
    `${screen.paint('bold', 'Body')}\n${stringifyExact(delivery.body, 2)}`,
    ...(delivery.status === 'failed'
      ? [screen.paint('yellow', `Send it again: ${COMMAND} webhooks redeliver ${delivery.id}`)]
      : []),
  ].join('\n\n')
}

export function redeliver(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const delivery = await client.webhooks.redeliver(id)
    return done(screen, `Message ${id} is on its way to ${delivery.url}.`, delivery)
  })
}

export function listEndpoints(options: GlobalOptions & { readonly owner?: string }): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const endpoints = await client.webhooks.endpoints({ owner: options.owner }).all()
    if (screen.isJson) printJson(screen, endpoints)
    else if (endpoints.length === 0) screen.out('No webhook has been sent anywhere yet.')
    else screen.out(endpointTable(screen, endpoints))
    return EXIT.ok
  })
}

function endpointTable(screen: Screen, endpoints: readonly WebhookEndpoint[]): string {
  const now = nowSeconds()
  const when = (at: number | null): string => (at === null ? '–' : ago(at, now))
  return table(screen, endpoints, [
    { title: 'endpoint', cell: (one) => one.id },
    { title: 'status', cell: (one) => paintStatus(screen, one.status) },
    { title: 'failures', cell: (one) => String(one.consecutiveFailures), align: 'right' },
    { title: 'last success', cell: (one) => when(one.lastSuccessAt), align: 'right' },
    { title: 'last failure', cell: (one) => when(one.lastFailureAt), align: 'right' },
    { title: 'address', cell: (one) => one.address },
    { title: 'why', cell: (one) => one.lastError ?? '' },
  ])
}

export function enableEndpoint(endpoint: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const enabled = await client.webhooks.enable(await endpointId(client, endpoint))
    const { address, released } = enabled
    const waited = released === 0 ? '' : `; ${released} that waited ${released === 1 ? 'is' : 'are'} sent now`
    return done(screen, `${address} gets messages again${waited}.`, enabled)
  })
}

/** The secret alone on standard output, so that it can go straight into a file or a variable. */
export function showSecret(endpoint: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const found = await client.webhooks.secret(await endpointId(client, endpoint))
    if (screen.isJson) printJson(screen, found)
    else screen.out(found.secret)
    return EXIT.ok
  })
}

export interface RotateOptions extends GlobalOptions {
  readonly overlap?: number
  readonly key?: string
}

export function rotateSecret(endpoint: string, options: RotateOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const id = await endpointId(client, endpoint)
    const rotated = await client.webhooks.rotateSecret(id, { overlapMs: options.overlap, idempotencyKey: options.key })
    if (screen.isJson) {
      printJson(screen, rotated)
      return EXIT.ok
    }
    const { secret, oldSecretUntil: oldUntil } = rotated
    screen.out(secret)
    screen.err(
      oldUntil === null
        ? 'The old secret counts no more.'
        : `Until ${localTime(oldUntil)} messages are signed with the old secret too.`,
    )
    return EXIT.ok
  })
}

/** Endpoints may be named by their address: one that is not known yet is made known by it. */
async function endpointId(client: Client, endpoint: string): Promise<string> {
  return /^https?:/i.test(endpoint) ? (await client.webhooks.declare(endpoint)).id : endpoint
}
