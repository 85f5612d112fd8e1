import type { FastifyInstance } from 'fastify'
import type { Clock } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { LIMITS } from '@impresario/protocol'
import { endpointId } from '@impresario/webhooks'
import type { Webhooks } from '@impresario/webhooks'
import { callerOf, isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import { ownerFilter, storedJobId } from './job-access.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import { decodeCursor, encodeCursor, linkNextPage } from '../http/page.ts'
import { keyOf } from './request-key.ts'
import { route, readQuery } from '../http/route.ts'
import * as wire from './wire-webhook.ts'

export interface WebhookRoutesOptions {
  readonly engine: Pick<Engine, 'readJob'>
  readonly webhooks: Webhooks
  readonly clock: Clock
}

const LIST_DELIVERIES = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'webhooks',
  id: 'listDeliveries',
  isList: true,
  summary: 'List webhook messages and what became of them, newest first',
  query: wire.deliveryQuery,
  replies: { 200: { description: 'One page of messages.', body: wire.deliveryList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const READ_DELIVERY = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'webhooks',
  id: 'getDelivery',
  summary: 'A webhook message with its body and its attempts',
  params: wire.deliveryParams,
  replies: { 200: { description: 'The message.', body: wire.deliveryBody } },
  refusals: ['NOT_FOUND'],
})

const REDELIVER = route({
  access: 'client',
  scope: 'jobs:write',
  tag: 'webhooks',
  id: 'redeliver',
  summary: 'Send a webhook message once more',
  description:
    'Sends the message again under the same id, at once and with all its attempts, also to an endpoint that is disabled. When it arrives, the endpoint is enabled. A message that is about to be sent anyway is left as it is.',
  params: wire.deliveryParams,
  replies: { 202: { description: 'The message is on its way.', body: wire.deliveryBody } },
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

const LIST_ENDPOINTS = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'webhooks',
  id: 'listWebhookEndpoints',
  isList: true,
  summary: 'List webhook endpoints and their health',
  query: wire.endpointListQuery,
  replies: { 200: { description: 'One page of endpoints.', body: wire.webhookEndpointList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const DECLARE = route({
  access: 'client',
  scope: 'jobs:write',
  tag: 'webhooks',
  id: 'declareWebhookEndpoint',
  summary: 'Name an address that will get webhooks, to learn its secret beforehand',
  description: 'One that is known already stays as it is. Nothing is sent. The query of the address does not matter.',
  body: wire.declareEndpointRequest,
  replies: { 200: { description: 'The endpoint.', body: wire.webhookEndpointBody } },
  refusals: ['INVALID_REQUEST', 'LIMIT_EXCEEDED'],
})

const READ_ENDPOINT = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'webhooks',
  id: 'getWebhookEndpoint',
  summary: 'A receiver of webhooks and how it fares',
  params: wire.webhookEndpointParams,
  replies: { 200: { description: 'The endpoint.', body: wire.webhookEndpointBody } },
  refusals: ['NOT_FOUND'],
})

const ENABLE = route({
  access: 'client',
  scope: 'jobs:write',
  tag: 'webhooks',
  id: 'enableWebhookEndpoint',
  summary: 'Send to an endpoint again that was disabled or has a pause',
  description:
    'New messages, and those that wait for it, are sent at once; `released` says how many have waited. Those that failed meanwhile are in the log and can be redelivered.',
  params: wire.webhookEndpointParams,
  replies: { 200: { description: 'The endpoint.', body: wire.enabledEndpointBody } },
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

const SECRET = route({
  access: 'client',
  scope: 'jobs:write',
  tag: 'webhooks',
  id: 'getWebhookSecret',
  summary: 'The secret that messages to an endpoint are signed with',
  params: wire.webhookEndpointParams,
  replies: { 200: { description: 'The secret.', body: wire.webhookSecretBody } },
  refusals: ['NOT_FOUND'],
})

const ROTATE = route({
  access: 'client',
  scope: 'jobs:write',
  tag: 'webhooks',
  id: 'rotateWebhookSecret',
  summary: 'Replace the secret of an endpoint',
  description:
    'For a day, or as long as `overlap` says, messages carry two signatures, of the new secret and of the old. With the header `Idempotency-Key` the same call once more answers with the secret and does not replace it again.',
  params: wire.webhookEndpointParams,
  body: wire.rotateSecretRequest,
  isBodyOptional: true,
  replies: { 200: { description: 'The new secret.', body: wire.webhookSecretBody } },
  refusals: ['NOT_FOUND', 'LIMIT_EXCEEDED', 'CONFLICT', 'IDEMPOTENCY_KEY_REUSED'],
})

interface DeliveryParams {
  readonly delivery_id: string
}

interface EndpointParams {
  readonly endpoint_id: string
}

/** The log of messages to the outside, and the state and secrets of those who get them. */
export function registerWebhookRoutes(app: FastifyInstance, options: WebhookRoutesOptions): void {
  registerDeliveryRoutes(app, options)
  registerEndpointRoutes(app, options)
  registerSecretRoutes(app, options)
}

/** Whose records a caller may see by their id. */
function ownerOf(caller: Caller): string | undefined {
  return isAdmin(caller) ? undefined : caller.client.id
}

function registerDeliveryRoutes(app: FastifyInstance, { webhooks, engine }: WebhookRoutesOptions): void {
  app.get('/webhooks/deliveries', LIST_DELIVERIES, async (request, reply) => {
    const { limit, cursor, owner, job_id: jobId, event, status } = readQuery(wire.deliveryQuery, request.query)
    const { items, next } = await webhooks.listDeliveries({
      owner: ownerFilter(callerOf(request), owner).owner,
      jobId: jobId === undefined ? undefined : await storedJobId(engine, callerOf(request), jobId),
      event,
      status,
      before: cursor === undefined ? undefined : decodeCursor(cursor),
      limit: limit ?? LIMITS.pageSizeDefault,
    })
    if (next !== undefined) linkNextPage(request, reply, 'cursor', encodeCursor(next))
    return items.map(wire.wireDelivery)
  })

  app.get<{ Params: DeliveryParams }>('/webhooks/deliveries/:delivery_id', READ_DELIVERY, async (request) =>
    wire.wholeDelivery(await webhooks.delivery(ownerOf(callerOf(request)), request.params.delivery_id)),
  )

  app.post<{ Params: DeliveryParams }>(
    '/webhooks/deliveries/:delivery_id/redeliver',
    REDELIVER,
    async (request, reply) => {
      const delivery = await webhooks.redeliver(ownerOf(callerOf(request)), request.params.delivery_id)
      void reply.code(202)
      return wire.wholeDelivery(delivery)
    },
  )
}

function registerEndpointRoutes(app: FastifyInstance, { webhooks, clock }: WebhookRoutesOptions): void {
  app.get('/webhooks/endpoints', LIST_ENDPOINTS, async (request, reply) => {
    const { limit, cursor, owner } = readQuery(wire.endpointListQuery, request.query)
    const { items, next } = await webhooks.listEndpoints(
      ownerFilter(callerOf(request), owner).owner,
      cursor === undefined ? undefined : decodeCursor(cursor),
      limit ?? LIMITS.pageSizeDefault,
    )
    if (next !== undefined) linkNextPage(request, reply, 'cursor', encodeCursor(next))
    return items.map((one) => wire.wireEndpoint(endpointId(one.clientId, one.address), one, clock.now()))
  })

  app.post<{ Body: { readonly url: string } }>('/webhooks/endpoints', DECLARE, async (request) => {
    const endpoint = await webhooks.declareEndpoint(callerOf(request).client.id, request.body.url)
    return wire.wireEndpoint(endpointId(endpoint.clientId, endpoint.address), endpoint, clock.now())
  })

  app.get<{ Params: EndpointParams }>('/webhooks/endpoints/:endpoint_id', READ_ENDPOINT, async (request) => {
    const id = request.params.endpoint_id
    return wire.wireEndpoint(id, await webhooks.endpoint(ownerOf(callerOf(request)), id), clock.now())
  })

  app.post<{ Params: EndpointParams }>('/webhooks/endpoints/:endpoint_id/enable', ENABLE, async (request) => {
    const id = request.params.endpoint_id
    const { endpoint, released } = await webhooks.enable(ownerOf(callerOf(request)), id)
    return { ...wire.wireEndpoint(id, endpoint, clock.now()), released }
  })
}

function registerSecretRoutes(app: FastifyInstance, { webhooks }: WebhookRoutesOptions): void {
  app.get<{ Params: EndpointParams }>('/webhooks/endpoints/:endpoint_id/secret', SECRET, async (request, reply) => {
    const id = request.params.endpoint_id
    void reply.header('cache-control', 'no-store')
    return wire.wireSecret(id, await webhooks.secret(ownerOf(callerOf(request)), id))
  })

  app.post<{ Params: EndpointParams; Body: { readonly overlap?: number | null } | null | undefined }>(
    '/webhooks/endpoints/:endpoint_id/rotate-secret',
    ROTATE,
    async (request, reply) => {
      const id = request.params.endpoint_id
      const overlap = request.body?.overlap
      const overlapMs = typeof overlap === 'number' ? overlap * 1_000 : undefined
      void reply.header('cache-control', 'no-store')
      return wire.wireSecret(id, await webhooks.rotateSecret(ownerOf(callerOf(request)), id, overlapMs, keyOf(request)))
    },
  )
}
