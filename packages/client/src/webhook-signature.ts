import { parseExact } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'

/** What a webhook tells. Questions to people add `message`, `decisions`, `visit` and more, events of workers `payload`. */
export interface WebhookBody extends DataObject {
  readonly event: string
  readonly job_id: string
  readonly status: string
  /** `null` as well when it is too long for a webhook; then `result_omitted` is true. */
  readonly result: Data
  readonly error: { readonly code: string; readonly message: string } | null
  /** Unix seconds. */
  readonly timestamp: number
}

export interface WebhookMessage {
  /** The same for every attempt of one message: keep the ids that you have handled, and leave out those you know. */
  readonly id: string
  /** When this attempt was signed. */
  readonly sentAt: Date
  readonly body: WebhookBody
}

/** Of a `Request`, or of Node's `IncomingMessage`. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyOptions {
  /** How far the time of the message may be from ours, either way; five minutes without it. */
  readonly toleranceMs?: number
  /** The present time in milliseconds since 1970, instead of the clock of this machine. */
  readonly now?: number
}

/** A message that is not to be believed. Answer 401, and nothing more. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
}

const TOLERANCE_MS = 300_000
const PREFIX = 'whsec_'

/**
 * Checks a webhook by Standard Webhooks and gives what it tells; rejects with `WebhookError` when it is not genuine, or
 * too old or new to be. The body has to be as it came, byte for byte, before anything has parsed it. While a secret is
 * being replaced give the new one or the old one: messages carry the signatures of both.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookMessage> {
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  const signatures = signaturesIn(headerOf(headers, 'webhook-signature'))
  const sentAt = timeOf(timestamp, options)
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const head = new TextEncoder().encode(`${id}.${timestamp}.`)
  const content = new Uint8Array(head.length + bytes.length)
  content.set(head)
  content.set(bytes, head.length)
  for (const one of typeof secret === 'string' ? [secret] : secret) {
    if (await isSigned(content, signatures, await keyOf(one))) return { id, sentAt, body: bodyIn(bytes) }
  }
  throw new WebhookError('No signature of the webhook fits the secret.')
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value = isGetter(headers) ? headers.get(name) : recordValue(headers, name)
  if (typeof value === 'string' && value !== '') return value
  throw new WebhookError(`The webhook has no header "${name}".`)
}

function isGetter(headers: WebhookHeaders): headers is { get(name: string): string | null } {
  return 'get' in headers && typeof headers.get === 'function'
}

/** Node writes names in lower case; others may not. */
function recordValue(headers: Readonly<Record<string, string | readonly string[] | undefined>>, name: string) {
  const value = headers[name] ?? Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof value === 'object' ? value[0] : value
}

function timeOf(timestamp: string, { toleranceMs = TOLERANCE_MS, now = Date.now() }: VerifyOptions): Date {
  const at = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) * 1_000 : Number.NaN
  if (Number.isNaN(at)) throw new WebhookError('The header "webhook-timestamp" is no time in Unix seconds.')
  if (at < now - toleranceMs) throw new WebhookError('The webhook is too old.')
  if (at > now + toleranceMs) throw new WebhookError('The webhook is from the future: compare the clocks.')
  return new Date(at)
}

/** More than any sender uses; a header full of them must not keep us busy. */
const SIGNATURES_MAX = 10

/** Only `v1`; other versions may stand beside it. */
function signaturesIn(header: string): readonly Uint8Array<ArrayBuffer>[] {
  const found: Uint8Array<ArrayBuffer>[] = []
  for (const one of header.split(' ').slice(0, SIGNATURES_MAX)) {
    const [version, text] = one.split(',', 2)
    const bytes = version === 'v1' && text !== undefined ? bytesOf(text) : undefined
    if (bytes !== undefined) found.push(bytes)
  }
  return found
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = bytesOf(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret)
  if (bytes === undefined || bytes.length === 0) throw new TypeError('A secret of webhooks is whsec_ and base64.')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

/** The comparison takes the same time wherever the difference is. */
async function isSigned(
  content: Uint8Array<ArrayBuffer>,
  signatures: readonly Uint8Array<ArrayBuffer>[],
  key: CryptoKey,
): Promise<boolean> {
  for (const signature of signatures) {
    if (await crypto.subtle.verify('HMAC', key, signature, content)) return true
  }
  return false
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
  } catch {
    return undefined
  }
}

function bodyIn(bytes: Uint8Array): WebhookBody {
  try {
    return bodyOf(parseExact(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch (cause) {
    throw new WebhookError('The webhook is genuine, but its body is no JSON object.', { cause })
  }
}

/** The boundary at which a signed body is believed to be one of ours. */
function bodyOf(value: unknown): WebhookBody {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('not an object')
  return value as WebhookBody
}
