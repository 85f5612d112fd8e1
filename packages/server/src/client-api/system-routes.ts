import type { FastifyInstance } from 'fastify'
import { wallTime } from '@impresario/core'
import type { Clock, Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { LIMITS } from '@impresario/protocol'
import { z } from 'zod'
import type { ClientCredential } from '../auth/auth.ts'
import { CLIENT_ROLES } from '../http/access.ts'
import { route } from '../http/route.ts'
import type { HistoryReader } from '../orchestrator/history.ts'
import { isShared, shownAddress } from '../orchestrator/storage.ts'
import type { KnownDurability, StorageDurability } from '../orchestrator/storage.ts'
import { VERSION } from '../runtime/version.ts'
import type { AccountRoutesOptions } from './account-routes.ts'

/** Of the configuration, what the server is known by. */
export interface SystemSettings {
  readonly instanceId: string
  readonly timeZone: string
  readonly storageUrl: string
  readonly maxOpenJobs: number
  readonly maxOpenJobsPerClient: number
  readonly maxTransitionsPerJob: number
  readonly jobMaxRetries: number
  readonly jobRetentionDays: number
  readonly historyRetentionDays: number
  readonly idempotencyKeyHours: number
  readonly workerHealthCheckIntervalSeconds: number
  readonly reputationMinThreshold: number
}

export interface SystemParts extends Pick<AccountRoutesOptions, 'bodyLimitBytes' | 'rateLimit'> {
  readonly engine: Engine
  readonly storage: Storage
  readonly settings: SystemSettings
  /** What the database server promises, once it is known. */
  readonly durability: Pick<KnownDurability, 'known'>
  readonly clock: Clock
  readonly history: Pick<HistoryReader, 'status' | 'isComplete'>
  /** Those of the configuration that are in force now; nobody where there is no frontend. */
  readonly clients?: () => readonly Pick<ClientCredential, 'client' | 'role' | 'monthlyAttempts' | 'tokens'>[]
}

const days = z.number().nullable()

export const systemReply = z.object({
  version: z.string().describe('Of Impresario.'),
  node_version: z.string(),
  platform: z.string().describe('Operating system and processor.'),
  instance_id: z.string().describe('The instance that answers.'),
  started_at: z.number().describe('When its process started, Unix seconds.'),
  time_zone: z.string().describe('In which schedules and quotas count.'),
  time_zone_data: z.string().nullable().describe('The version of the rules of time zones, such as 2025b.'),
  storage: z.object({
    kind: z.enum(['memory', 'file', 'redis', 'postgres']),
    address: z.string().describe('Without user and password.'),
    is_shared: z.boolean().describe('Whether several instances can work on it.'),
    promise: z
      .enum(['always', 'everysec', 'none', 'unknown'])
      .describe(
        'What it promises for what was acknowledged. `always`: it survives a power cut. `everysec`: up to two seconds of it may be lost with the machine. `none`: a crash may lose it, and the memory of a process ends with the process. `unknown`: the database server does not tell. With `strict=true` in the address a server that promises less than `always` is refused.',
      ),
    doubts: z
      .array(z.string())
      .describe(
        'Why a write that was acknowledged could be lost, by the settings that the database server had at the start.',
      ),
  }),
  instances: z
    .array(
      z.object({
        instance_id: z.string(),
        version: z.string(),
        started_at: z.number().describe('Unix seconds.'),
        status: z
          .enum(['running', 'silent', 'stopped'])
          .describe('`silent`: not heard for fifteen seconds, probably gone. `stopped`: it said goodbye.'),
        is_this: z.boolean().describe('The instance that answers.'),
        leads: z.array(z.string()).describe('The processes that it runs for all instances.'),
        last_seen_at: z.number().describe('When the answering instance heard it last, Unix seconds.'),
      }),
    )
    .describe(
      'Those that work on the storage, the answering one first. Those that have gone stay in the list for ten minutes. An instance that has just started may miss others for five seconds.',
    ),
  leads: z
    .array(
      z.object({
        process: z.string(),
        led_by: z.enum(['this_instance', 'another_instance', 'nobody']),
        instance_id: z.string().nullable().describe('Which one, as far as it is known.'),
      }),
    )
    .describe('The processes of which one runs for all instances, and where. `nobody`: there is nothing to do for it.'),
  history: z.object({
    is_complete: z.boolean().describe('Whether all events are kept; otherwise only what jobs remember themselves.'),
    is_away: z.boolean().describe('Its database does not answer.'),
    waiting: z.int().describe('Events that are not written yet.'),
    dropped: z.int().describe('Events that were lost since the start.'),
  }),
  limits: z.object({
    body_bytes: z.int(),
    batch_items: z.int(),
    page_size: z.int(),
    requests: z.object({ limit: z.int(), period_seconds: z.number() }).nullable().describe('Of one caller.'),
    open_jobs: z.int().describe('Of all clients together.'),
    open_jobs_per_client: z.int(),
    transitions_per_job: z.int(),
    attempts: z.int().describe('Of a task or a handler that names no number itself.'),
    job_retention_days: days.describe('How long jobs that have ended are kept; null: for ever.'),
    history_retention_days: days,
    idempotency_key_hours: z.number(),
    worker_silence_seconds: z.number().describe('A worker that sends nothing for so long gets no more tasks.'),
  }),
})

const clientBody = z.object({
  client_id: z.string(),
  role: z.enum(CLIENT_ROLES),
  plan: z.string().nullable(),
  monthly_attempts: z.int().nullable().describe('Jobs that it may start in a month; null without a limit.'),
  tokens: z.int().describe('How many tokens it has. With two, one can be replaced while the other works.'),
})
export const clientListReply = z.array(clientBody)

const BASE = { access: 'admin', scope: 'admin', tag: 'server' } as const

const SYSTEM = route({
  ...BASE,
  id: 'getSystem',
  summary: 'What this server is: versions, storage, leads and limits',
  description: 'Of the instance that answers. What is wrong at this moment is at `/_public/ready`.',
  replies: { 200: { description: 'The server.', body: systemReply } },
})

const CLIENTS = route({
  ...BASE,
  id: 'listClients',
  summary: 'List the clients of the configuration, by id',
  description:
    'Without their tokens. Clients are kept in the file `CLIENTS_CONFIG_PATH`: to rotate or revoke a token, change the file and reload it with `POST /admin/reload`.',
  replies: { 200: { description: 'Those in force on the instance that answers.', body: clientListReply } },
})

/** What the server is, and whom it knows. */
export function registerSystemRoutes(app: FastifyInstance, parts: SystemParts): void {
  app.get('/admin/system', SYSTEM, () => systemBody(parts))
  app.get('/admin/clients', CLIENTS, async () => clientList(parts))
}

export function clientList({ clients }: Pick<SystemParts, 'clients'>): z.output<typeof clientListReply> {
  return (clients?.() ?? [])
    .map(({ client, role, monthlyAttempts, tokens }) => ({
      client_id: client.id,
      role,
      plan: client.plan ?? null,
      monthly_attempts: monthlyAttempts ?? null,
      tokens: tokens.length,
    }))
    .toSorted((a, b) => (a.client_id < b.client_id ? -1 : 1))
}

/** Processes of which one runs in a cluster. */
const LED = ['scheduler', 'health-checker', 'reputation', 'file-janitor'] as const

export async function systemBody(parts: SystemParts): Promise<z.output<typeof systemReply>> {
  const { settings, history } = parts
  const { isAway, waiting, dropped } = history.status
  return {
    version: VERSION,
    node_version: process.versions.node,
    platform: `${process.platform} ${process.arch}`,
    instance_id: settings.instanceId,
    started_at: performance.timeOrigin / 1_000,
    time_zone: settings.timeZone,
    time_zone_data: process.versions['tz'] ?? null,
    storage: storageOf(settings.storageUrl, parts.durability.known),
    instances: instancesOf(parts),
    leads: await leadsOf(parts),
    history: { is_complete: history.isComplete, is_away: isAway, waiting, dropped },
    limits: limitsOf(parts),
  }
}

type System = z.output<typeof systemReply>

async function leadsOf({ engine, storage, settings }: SystemParts): Promise<System['leads']> {
  const views = await storage.peek('leaders', LED)
  return LED.map((name, index) => {
    if (engine.leadership.isLeading(name)) {
      return { process: name, led_by: 'this_instance', instance_id: settings.instanceId }
    }
    if (views[index]?.lease === undefined) return { process: name, led_by: 'nobody', instance_id: null }
    const leader = engine.company.peers.find(({ status, leads }) => status === 'running' && leads.includes(name))
    return { process: name, led_by: 'another_instance', instance_id: leader?.name ?? null }
  })
}

function instancesOf({ engine, settings, clock }: SystemParts): System['instances'] {
  const now = wallTime(clock)
  const own = {
    instance_id: settings.instanceId,
    version: VERSION,
    started_at: performance.timeOrigin / 1_000,
    status: 'running' as const,
    is_this: true,
    leads: [...engine.leadership.led],
    last_seen_at: now / 1_000,
  }
  const others = engine.company.peers.map(({ name, version, startedAt, status, leads, silentMs }) => ({
    instance_id: name,
    version,
    started_at: startedAt,
    status,
    is_this: false,
    leads: status === 'running' ? [...leads] : [],
    last_seen_at: (now - silentMs) / 1_000,
  }))
  return [own, ...others.toSorted((a, b) => (a.instance_id < b.instance_id ? -1 : 1))]
}

function storageOf(url: string, durability: StorageDurability | undefined): System['storage'] {
  const address = shownAddress(url)
  const alone = { address, is_shared: false, doubts: [] }
  if (url.startsWith('memory')) return { ...alone, kind: 'memory', promise: 'none' }
  if (url.startsWith('file:')) return { ...alone, kind: 'file', promise: 'always' }
  return {
    kind: /^redis/i.test(url) ? 'redis' : 'postgres',
    address,
    is_shared: isShared(url),
    promise: durability?.promise ?? 'unknown',
    doubts: [...(durability?.doubts ?? [])],
  }
}

function limitsOf({ settings, bodyLimitBytes, rateLimit }: SystemParts): z.output<typeof systemReply>['limits'] {
  return {
    body_bytes: bodyLimitBytes,
    batch_items: LIMITS.batchItemsMax,
    page_size: LIMITS.pageSizeMax,
    requests: rateLimit === undefined ? null : { limit: rateLimit.limit, period_seconds: rateLimit.periodSeconds },
    open_jobs: settings.maxOpenJobs,
    open_jobs_per_client: settings.maxOpenJobsPerClient,
    transitions_per_job: settings.maxTransitionsPerJob,
    attempts: settings.jobMaxRetries + 1,
    job_retention_days: orNone(settings.jobRetentionDays),
    history_retention_days: orNone(settings.historyRetentionDays),
    idempotency_key_hours: settings.idempotencyKeyHours,
    worker_silence_seconds: settings.workerHealthCheckIntervalSeconds * 2,
  }
}

/** In the settings zero days mean: for ever. */
function orNone(limit: number): number | null {
  return limit === 0 ? null : limit
}
