import { createHmac } from 'node:crypto'
import type { HookRecord } from '@impresario/automations'
import { sameSecret } from '../runtime/secret.ts'

/** What a sender sent, as it came. */
export interface HookMessage {
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly raw: Buffer
  /** Milliseconds since 1970. */
  readonly now: number
}

/** A message that is older is not taken, because it may be a repetition by somebody else. */
const TOLERANCE_SECONDS = 300

type Check = (message: HookMessage, secret: string, hook: HookRecord) => boolean

/** Whether the message comes from who knows the secret, and is not too old where its sender signs the time. */
export function isGenuine(message: HookMessage, secret: string, hook: HookRecord): boolean {
  return CHECKS[hook.preset](message, secret, hook)
}

const CHECKS: Readonly<Record<HookRecord['preset'], Check>> = {
  github: ({ headers, raw }, secret) => isSigned(headers['x-hub-signature-256'], `sha256=${hmac(secret, [raw])}`),
  gitlab: (message, secret) => isSigned(message.headers['x-gitlab-token'], secret) || isStandard(message, secret),
  slack: ({ headers, raw, now }, secret) => {
    const time = headers['x-slack-request-timestamp']
    if (!isRecent(time, now)) return false
    return isSigned(headers['x-slack-signature'], `v0=${hmac(secret, [`v0:${time}:`, raw])}`)
  },
  stripe: ({ headers, raw, now }, secret) => {
    const parts = (headers['stripe-signature'] ?? '').split(',').map((part) => part.trim().split('=', 2))
    const time = parts.find(([key]) => key === 't')?.[1]
    if (!isRecent(time, now)) return false
    const expected = hmac(secret, [`${time}.`, raw])
    return parts.slice(0, SIGNATURES_MAX).some(([key, value]) => key === 'v1' && isSigned(value, expected))
  },
  alertmanager: ({ headers }, secret) => isBearer(headers, secret),
  grafana: ({ headers, raw }, secret) => {
    const signature = headers['x-grafana-alerting-signature']
    return signature === undefined ? isBearer(headers, secret) : isSigned(signature, hmac(secret, [raw]))
  },
  standard: (message, secret) => isStandard(message, secret),
  hmac: ({ headers, raw, now }, secret, { signature }) => {
    const { header, algorithm, encoding, prefix, timestampHeader } = signature
    const time = timestampHeader === undefined ? undefined : headers[timestampHeader]
    if (timestampHeader !== undefined && !isRecent(time, now)) return false
    const signed = time === undefined ? [raw] : [`${time}.`, raw]
    const expected = `${prefix}${hmac(secret, signed, algorithm, encoding)}`
    const given = headers[header]
    // Some senders write the digits in capitals.
    return encoding === 'hex' ? isSigned(given?.toLowerCase(), expected.toLowerCase()) : isSigned(given, expected)
  },
  token: ({ headers }, secret, { signature }) =>
    isSigned(headers[signature.header], secret) || isBearer(headers, secret),
}

/** A header may hold several signatures while a secret is changed; more than these are not looked at. */
const SIGNATURES_MAX = 10

/** Standard Webhooks: the id, the time and the body are signed, with a secret that is written in base64. */
function isStandard({ headers, raw, now }: HookMessage, secret: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': given } = headers
  if (id === undefined || given === undefined || !isRecent(time, now)) return false
  const signatures = given.split(' ').slice(0, SIGNATURES_MAX)
  return standardKeys(secret).some((key) => {
    const expected = `v1,${hmac(key, [`${id}.${time}.`, raw], 'sha256', 'base64')}`
    return signatures.some((one) => isSigned(one, expected))
  })
}

const STANDARD_PREFIX = 'whsec_'
/** What is no base64 decodes to a short key, or to an empty one, which everybody could sign with. */
const KEY_BYTES_MIN = 16

/** Libraries of senders decode the secret with and without its prefix; some senders take it as it is. */
function standardKeys(secret: string): readonly (string | Buffer)[] {
  const isPrefixed = secret.startsWith(STANDARD_PREFIX)
  const decoded = Buffer.from(isPrefixed ? secret.slice(STANDARD_PREFIX.length) : secret, 'base64')
  return [...(decoded.length >= KEY_BYTES_MIN ? [decoded] : []), ...(isPrefixed ? [] : [secret])]
}

function isBearer({ authorization = '' }: HookMessage['headers'], secret: string): boolean {
  if (/^bearer /i.test(authorization)) return isSigned(authorization.slice('bearer '.length).trim(), secret)
  if (!/^basic /i.test(authorization)) return false
  const pair = Buffer.from(authorization.slice('basic '.length).trim(), 'base64').toString('utf8')
  return isSigned(pair.slice(pair.indexOf(':') + 1), secret)
}

function isRecent(time: string | undefined, now: number): time is string {
  if (time === undefined || !/^\d{1,12}$/.test(time)) return false
  return Math.abs(now / 1_000 - Number(time)) <= TOLERANCE_SECONDS
}

function isSigned(given: string | undefined, expected: string): boolean {
  return given !== undefined && given !== '' && sameSecret(given, expected)
}

function hmac(
  secret: string | Buffer,
  parts: readonly (string | Buffer)[],
  algorithm = 'sha256',
  encoding: 'hex' | 'base64' = 'hex',
): string {
  const made = createHmac(algorithm, secret)
  for (const part of parts) made.update(part)
  return made.digest(encoding)
}
