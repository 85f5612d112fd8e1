import { createHash, createHmac } from 'node:crypto'

/*
 * Standard Webhooks: `webhook-signature` holds `v1,` and the base64 of the HMAC-SHA256 over `id.timestamp.body`. The key is
 * the secret without `whsec_`, decoded from base64. While a secret is being replaced there are two, with a space between.
 */

const PREFIX = 'whsec_'

/** What the standard asks of a secret. */
const KEY_BYTES_MIN = 24
const KEY_BYTES_MAX = 64

/** Derives a key from the server's own secret. The same purpose gives the same key, and another one tells nothing of it. */
export type DeriveSecret = (purpose: string) => Buffer

export interface SecretOwner {
  readonly clientId: string
  readonly address: string
}

/** A secret as receivers get it. Nothing is stored: it follows from the server's own, whom it is for, and how often it was replaced. */
export function webhookSecret(
  deriveSecret: DeriveSecret,
  { clientId, address }: SecretOwner,
  rotation: number,
): string {
  const key = deriveSecret(`webhook ${JSON.stringify([clientId, address, rotation])}`)
  if (key.length < KEY_BYTES_MIN || key.length > KEY_BYTES_MAX) {
    throw new Error(`A key for webhooks has ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes, not ${key.length}.`)
  }
  return `${PREFIX}${key.toString('base64')}`
}

export interface Signed {
  readonly id: string
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly body: string
}

export function sign({ id, timestamp, body }: Signed, secrets: readonly string[]): string {
  const content = `${id}.${timestamp}.${body}`
  return secrets.map((secret) => `v1,${createHmac('sha256', keyOf(secret)).update(content).digest('base64')}`).join(' ')
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice(PREFIX.length), 'base64')
}

/** What a header and the signed content can hold: a full stop would be taken for the end of the id. */
const SAFE_ID = /^[\w:@+=-]{1,255}$/

/** The message's id as receivers see it, the same for every attempt. */
export function webhookId(messageId: string): string {
  if (SAFE_ID.test(messageId)) return messageId
  return `msg_${createHash('sha256').update(messageId).digest('base64url')}`
}

export function webhookHeaders(signed: Signed, secrets: readonly string[]): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/json',
    'webhook-id': signed.id,
    'webhook-timestamp': String(signed.timestamp),
    'webhook-signature': sign(signed, secrets),
  }
}
