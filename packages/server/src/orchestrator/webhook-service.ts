import type { Clock, Log, Random, Storage } from '@impresario/core'
import { createHttpDeliver, readPorts, Webhooks, WebhookSender } from '@impresario/webhooks'
import type { OutboundPolicy } from '@impresario/webhooks'
import { DAY_MS } from '@impresario/protocol'
import type { SecretKey } from '../config/secret-key.ts'
import type { WebhookSettings } from '../config/webhook-keys.ts'

export interface WebhookPorts {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly secretKey: SecretKey
}

export interface WebhookService {
  readonly sender: WebhookSender
  readonly webhooks: Webhooks
}

/** Where messages may go, by the settings. */
export function webhookPolicy(settings: WebhookSettings, allowLoopback = false): OutboundPolicy {
  const { webhookAllowHttp: allowHttp, webhookAllowPrivate: allowPrivate, webhookAllowedPorts: ports } = settings
  return { allowHttp, allowPrivate, allowedPorts: readPorts(ports) ?? [], allowLoopback }
}

/** What sends webhooks, and what tells of them. */
export function createWebhooks(
  settings: WebhookSettings,
  policy: OutboundPolicy,
  { storage, clock, random, log, secretKey }: WebhookPorts,
): WebhookService {
  const deriveSecret = (purpose: string): Buffer => secretKey.derive(purpose)
  const retentionMs = settings.webhookLogDays * DAY_MS
  const deliver = createHttpDeliver({ policy })
  return {
    sender: new WebhookSender({ storage, deliver, deriveSecret, clock, random, log, retentionMs }),
    webhooks: new Webhooks({ storage, clock, deriveSecret, policy, retentionMs }),
  }
}
