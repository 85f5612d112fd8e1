import { LIMITS } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import type { Effect } from './effect.ts'
import { shownJobId } from './identity.ts'
import type { HumanWait, Job } from './job.ts'

/** What an item of the queue `outbox` carries: one message for one address, as it will be sent. */
export type OutboxMessage = JsonObject & {
  /** Without full stops. A message that is sent again has the same one. */
  readonly messageId: string
  readonly url: string
  readonly clientId: string
  readonly jobId: string
  readonly event: string
  readonly at: number
  /** Trace headers that go with it. */
  readonly tracing?: Readonly<Record<string, string>>
  /** In wire form. */
  readonly body: WebhookBody
}

/** Approvals add `message`, `decisions`, `visit` and more, events of workers `payload`. */
export interface WebhookBody extends JsonObject {
  readonly event: string
  readonly job_id: string
  readonly status: string
  readonly result: Json
  readonly error: { readonly code: string; readonly message: string } | null
  /** Seconds since 1970. */
  readonly timestamp: number
}

/** The message for a job's webhook, from the job as the decision leaves it; `undefined` when it has none. */
export function outboxMessage(job: Job, effect: Extract<Effect, { type: 'webhook' }>): OutboxMessage | undefined {
  const { webhookUrl, error, metadata, tracing, updatedAt: at } = job
  if (webhookUrl === undefined) return undefined
  const { event, messageId, details } = effect
  const body: WebhookBody = {
    ...details,
    event,
    job_id: shownJobId(job.id),
    status: job.status,
    ...resultOf(job),
    error: error === undefined ? null : { code: error.code, message: error.message },
    timestamp: at / 1_000,
    ...(metadata === undefined ? {} : { metadata }),
  }
  const message = { messageId, url: webhookUrl, clientId: job.client.id, jobId: job.id, event, at, body }
  return tracing === undefined ? message : { ...message, tracing }
}

/** The record of a message in the log of deliveries before the first attempt to send it. */
export type PendingDelivery = OutboxMessage & {
  readonly status: 'pending'
  readonly attempts: readonly []
  readonly tries: 0
  readonly nextAttemptAt: null
  readonly isForced: false
  readonly note: null
  readonly endedAt: null
}

export function pendingDelivery(message: OutboxMessage): PendingDelivery {
  return {
    ...message,
    status: 'pending',
    attempts: [],
    tries: 0,
    nextAttemptAt: null,
    isForced: false,
    note: null,
    endedAt: null,
  }
}

function resultOf({ result }: Job): { readonly result: Json; readonly result_omitted?: true } {
  if (result === undefined) return { result: null }
  const isShort = JSON.stringify(result).length <= LIMITS.webhookResultCharsMax
  return isShort ? { result } : { result: null, result_omitted: true }
}

/** An open request for a person's decision, as those who may decide see it. */
export interface Approval {
  /** Its identity: a decision that names another visit answers another request. */
  readonly visit: number
  readonly message: string
  readonly decisions: readonly string[]
  readonly expiresAt: number | undefined
  readonly reminders: number
  /** What is asked for beside the decision, as a JSON Schema of an object. */
  readonly form: JsonObject | undefined
  /** The decisions that need it. */
  readonly formFor: readonly string[]
}

export function approvalOf(job: Job): Approval | undefined {
  return job.wait?.kind === 'human' ? approvalIn(job.visit, job.wait) : undefined
}

export function approvalIn(visit: number, wait: HumanWait): Approval {
  const { message, transitions, expiresAt, reminders = 0, form, formFor = [] } = wait
  const decisions = Object.keys(transitions).filter(isDecision)
  return { visit, message, decisions, expiresAt, reminders, form, formFor }
}

/** `expired` is what happens without a decision; it cannot be chosen. */
export function isDecision(name: string): boolean {
  return name !== 'expired'
}

/** What webhooks say of an approval. */
export function approvalDetails({ visit, message, decisions, expiresAt, reminders }: Approval): JsonObject {
  return {
    message,
    decisions,
    visit,
    reminders,
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt / 1_000 }),
  }
}
