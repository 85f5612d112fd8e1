import { readPorts } from '@impresario/webhooks'
import type { ConfigKey } from './config-keys.ts'

/** Settings of messages to the outside. */
export interface WebhookSettings {
  readonly webhookAllowHttp: boolean
  readonly webhookAllowPrivate: boolean
  readonly webhookAllowedPorts: string
  readonly webhookLogDays: number
}

export const WEBHOOK_KEYS: Readonly<Record<keyof WebhookSettings, ConfigKey>> = {
  webhookAllowHttp: {
    names: ['WEBHOOK_ALLOW_HTTP'],
    type: 'switch',
    default: false,
    description: 'Allow webhooks and http.request to http:// addresses. They are not encrypted.',
  },
  webhookAllowPrivate: {
    names: ['WEBHOOK_ALLOW_PRIVATE'],
    type: 'switch',
    default: false,
    description:
      'Allow webhooks and http.request to this machine and to private networks. Every client can then reach services there. ' +
      'Cloud metadata addresses stay blocked.',
  },
  webhookAllowedPorts: {
    names: ['WEBHOOK_ALLOWED_PORTS'],
    type: 'text',
    check: portsProblem,
    default: '',
    description:
      'Allowed ports of webhooks and http.request, in addition to 443 (and 80 for http), such as 8443, 9000-9100.',
  },
  webhookLogDays: {
    names: ['WEBHOOK_LOG_DAYS'],
    type: 'integer',
    min: 4,
    max: 3_650,
    default: 30,
    description: 'How long a webhook message stays in the log of deliveries after its last change.',
  },
}

function portsProblem(text: string): string | undefined {
  if (readPorts(text) !== undefined) return undefined
  return `is ${JSON.stringify(text)}. It must be ports and ranges, such as 8443, 9000-9100.`
}
