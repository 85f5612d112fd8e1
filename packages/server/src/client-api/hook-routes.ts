import type { FastifyInstance } from 'fastify'
import { storedCopy } from '@impresario/core'
import type { Clock } from '@impresario/core'
import type { JsonObject } from '@impresario/protocol'
import type { AutomationService } from '../automations/automation-service.ts'
import { HookDelivery } from '../automations/hook-delivery.ts'
import { checkJsonText } from '../http/json-guard.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import { readQuery, route } from '../http/route.ts'
import { actorOf } from './actor.ts'
import { paged, pageOf } from './automation-routes.ts'
import * as wire from './wire-hook.ts'

export interface HookRoutesOptions {
  readonly automations: AutomationService
  readonly clock: Clock
  readonly publicUrl: string
}

const TAG = { tag: 'automations' } as const
const HOOK = { 200: { description: 'The source.', body: wire.hookBody } }
const named = (id: string, summary: string) => ({ ...TAG, id, summary, params: wire.hookParams })
/** Messages of senders are small; what is longer than an event is refused anyway. */
const MESSAGE_BYTES_MAX = 1_048_576

const LIST = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  isList: true,
  id: 'listHooks',
  summary: 'List sources of inbound webhooks',
  query: wire.hookListQuery,
  replies: { 200: { description: 'One page of sources.', body: wire.hookList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const READ = route({
  ...named('getHook', 'Read a source of inbound webhooks'),
  access: 'viewer',
  scope: 'automations:read',
  description: 'Its secret is never given out again.',
  replies: HOOK,
  refusals: ['NOT_FOUND'],
})

const PUT = route({
  ...named('putHook', 'Create or change a source of inbound webhooks'),
  access: 'client',
  scope: 'automations:write',
  description:
    'The answer has the URL for the sender, and the secret if it was made here. A change without `secret` keeps the old one.',
  body: wire.hookRequest,
  replies: HOOK,
  refusals: ['INPUT_REFUSED', 'LIMIT_EXCEEDED'],
})

const DELETE = route({
  ...named('deleteHook', 'Delete a source of inbound webhooks'),
  access: 'client',
  scope: 'automations:write',
  replies: { 204: { description: 'It is gone, and its address with it.' } },
  refusals: ['NOT_FOUND', 'CONFLICT'],
})

const RECEIVE = route({
  ...TAG,
  access: 'public',
  isNewWork: true,
  id: 'receiveWebhook',
  summary: 'Where senders of webhooks send to',
  description:
    'The signature is checked over the bytes as they came. Each message becomes an event, and the same delivery once more stays one event.',
  params: wire.addressParams,
  replies: { 200: { description: 'The event is safe.', body: wire.arrivedBody } },
  refusals: ['NOT_FOUND', 'UNAUTHENTICATED', 'INVALID_REQUEST', 'INPUT_REFUSED', 'LIMIT_EXCEEDED', 'BODY_TOO_LARGE'],
})

interface HookParams {
  readonly hook: string
}

/** Sources of inbound webhooks. */
export function registerHookRoutes(app: FastifyInstance, { automations: service, publicUrl }: HookRoutesOptions): void {
  const { hooks } = service.automations

  app.get('/hooks', LIST, async (request, reply) => {
    const { owner, limit, before } = pageOf(request, readQuery(wire.hookListQuery, request.query))
    const { items, next } = await hooks.list(owner, limit, before)
    const bodies = items.map((item) => wire.wireHook(item, publicUrl))
    return paged(request, reply, next, bodies)
  })

  app.get<{ Params: HookParams }>('/hooks/:hook', READ, async (request) =>
    wire.wireHook(await hooks.read(request.params.hook, actorOf(request)), publicUrl),
  )

  app.put<{ Params: HookParams; Body: JsonObject }>('/hooks/:hook', PUT, async (request) => {
    const { record, secret } = await hooks.put(request.params.hook, storedCopy(request.body), actorOf(request))
    return wire.wireHook(record, publicUrl, secret)
  })

  app.delete<{ Params: HookParams }>('/hooks/:hook', DELETE, async (request, reply) => {
    await hooks.remove(request.params.hook, actorOf(request))
    return reply.code(204).send()
  })
}

/** The addresses of all sources. Bodies are taken as bytes, whatever their type: a signature covers them. */
export function registerHookAddresses(app: FastifyInstance, options: HookRoutesOptions): void {
  const { automations: service, clock } = options
  const { hooks } = service.automations
  const delivery = new HookDelivery({ hooks, events: service.events, clock, checkJson: (text) => checkJsonText(text) })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MESSAGE_BYTES_MAX }, (_request, body, done) =>
    done(null, body),
  )

  app.post<{ Params: { address: string }; Body: Buffer | undefined }>('/hooks/:address', RECEIVE, async (request) => {
    const { params, headers, body } = request
    const arrived = await delivery.take({ address: params.address, headers, raw: body ?? Buffer.alloc(0) })
    if (arrived.type === 'challenge') return { challenge: arrived.challenge }
    return { event_id: arrived.eventId, topic: arrived.topic }
  })
}
