import type { FastifyInstance } from 'fastify'
import { wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { LIMITS, SCOPES } from '@impresario/protocol'
import { z } from 'zod'
import { callerOf, CLIENT_ROLES } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import type { QuotaCalendar } from '../limits/quota-calendar.ts'
import { route } from '../http/route.ts'

export interface AccountRoutesOptions {
  readonly engine: Engine
  readonly clock: Clock
  readonly quotas: QuotaCalendar
  readonly bodyLimitBytes: number
  /** Requests in so many seconds; `undefined` without limits. */
  readonly rateLimit: { readonly limit: number; readonly periodSeconds: number } | undefined
}

export const accountReply = z.object({
  client_id: z.string(),
  role: z.enum(CLIENT_ROLES),
  plan: z.string().nullable(),
  scopes: z.array(z.enum(SCOPES)).nullable().describe('What an agent may do; null for clients, who go by their role.'),
  on_behalf_of: z.string().nullable().describe('The person for whom an agent acts.'),
  quota: z
    .object({
      period: z.string().describe('The month that is counted, in the time zone of the server.'),
      limit: z.int(),
      used: z.int(),
      left: z.int(),
      renews_at: z.string().describe('When the next month begins.'),
    })
    .nullable()
    .describe('Jobs that may be started in a month; null without a limit.'),
  limits: z.object({
    body_bytes: z.int(),
    batch_items: z.int(),
    page_size: z.int(),
    requests: z.object({ limit: z.int(), period_seconds: z.number() }).nullable(),
  }),
})

const ACCOUNT = route({
  access: 'viewer',
  scope: 'any',
  tag: 'server',
  id: 'getAccount',
  summary: 'Who the token belongs to, and what is left of its quota',
  description:
    'Only starting a job costs; what is refused, or asked for again with the same idempotency key, does not.',
  replies: { 200: { description: 'The caller’s own account.', body: accountReply } },
})

export function registerAccountRoutes(app: FastifyInstance, options: AccountRoutesOptions): void {
  app.get('/account', ACCOUNT, (request) => accountBody(options, callerOf(request)))
}

/** Who a caller is, what is left of its quota, and its limits. */
export async function accountBody(
  { engine, clock, quotas, bodyLimitBytes, rateLimit }: AccountRoutesOptions,
  caller: Caller,
): Promise<z.output<typeof accountReply>> {
  const quota = quotas.quotaOf(caller)
  const use = quota === undefined ? undefined : await engine.quotaUse(caller.client.id, quota)
  return {
    client_id: caller.client.id,
    role: caller.role,
    plan: caller.client.plan ?? null,
    scopes: caller.scopes === undefined ? null : [...caller.scopes],
    on_behalf_of: caller.onBehalfOf ?? null,
    quota:
      quota === undefined || use === undefined
        ? null
        : {
            period: use.period,
            limit: quota.limit,
            used: use.used,
            left: Math.max(0, quota.limit - use.used),
            renews_at: new Date(wallTime(clock) + quota.renewsInMs).toISOString(),
          },
    limits: {
      body_bytes: bodyLimitBytes,
      batch_items: LIMITS.batchItemsMax,
      page_size: LIMITS.pageSizeMax,
      requests: rateLimit === undefined ? null : { limit: rateLimit.limit, period_seconds: rateLimit.periodSeconds },
    },
  }
}
