import type { FastifyInstance } from 'fastify'
import type { SecretRecord } from '@impresario/automations'
import { z } from 'zod'
import { PAGE_HEADERS } from './job-routes.ts'
import { readQuery, route } from '../http/route.ts'
import { actorOf } from './actor.ts'
import { paged, pageOf } from './automation-routes.ts'
import type { AutomationRoutesOptions } from './automation-routes.ts'
import { page } from './wire-automation.ts'

const params = z.object({ secret: z.string().describe('Name of a secret.') })
const listQuery = z.looseObject(page)
export const secretRequest = z.strictObject({ value: z.string().min(8).max(10_000) })
export const secretBody = z.object({
  name: z.string(),
  owner: z.string(),
  updated_at: z.number().describe('Unix seconds.'),
  updated_by: z.string(),
})

const TAG = { tag: 'automations' } as const
const named = (id: string, summary: string) => ({ ...TAG, id, summary, params })

const LIST = route({
  ...TAG,
  access: 'viewer',
  scope: 'automations:read',
  isList: true,
  id: 'listSecrets',
  summary: 'List the names of secrets',
  query: listQuery,
  replies: { 200: { description: 'One page of names.', body: z.array(secretBody), headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
})

const PUT = route({
  ...named('putSecret', 'Create or replace a secret'),
  access: 'client',
  scope: 'automations:write',
  description: 'Steps read it as `secrets.NAME`. It is stored encrypted, and no answer has it.',
  body: secretRequest,
  replies: { 200: { description: 'The secret is kept.', body: secretBody } },
  refusals: ['INPUT_REFUSED', 'LIMIT_EXCEEDED'],
})

const DELETE = route({
  ...named('deleteSecret', 'Delete a secret'),
  access: 'client',
  scope: 'automations:write',
  description: 'Steps that read it fail from now on.',
  replies: { 204: { description: 'It is gone.' } },
  refusals: ['NOT_FOUND'],
})

interface SecretParams {
  readonly secret: string
}

/** Secrets for the steps of pipelines. */
export function registerSecretRoutes(app: FastifyInstance, { automations: service }: AutomationRoutesOptions): void {
  const { secrets } = service.automations

  app.get('/secrets', LIST, async (request, reply) => {
    const { owner, limit, before } = pageOf(request, readQuery(listQuery, request.query))
    const { items, next } = await secrets.list(owner, limit, before)
    return paged(request, reply, next, items.map(wireSecret))
  })

  app.put<{ Params: SecretParams; Body: { value: string } }>('/secrets/:secret', PUT, async (request) =>
    wireSecret(await secrets.put(request.params.secret, request.body.value, actorOf(request))),
  )

  app.delete<{ Params: SecretParams }>('/secrets/:secret', DELETE, async (request, reply) => {
    await secrets.remove(request.params.secret, actorOf(request))
    return reply.code(204).send()
  })
}

function wireSecret({ name, owner, updatedAt, updatedBy }: SecretRecord): z.infer<typeof secretBody> {
  return { name, owner, updated_at: updatedAt / 1_000, updated_by: updatedBy }
}
