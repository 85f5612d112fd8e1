import type { Data, DataObject } from './exact/exact-json.ts'
import { isExactNumber, numberFrom } from './exact/exact-number.ts'
import { isMarkedNumber, literalText, unmarkedText } from './exact/exact-text.ts'
import { isJsonObject } from './json.ts'

/**
 * Signatures of the worker protocol: hex of HMAC-SHA256 over a canonical form of the message, keyed with the worker's
 * own token. One implementation for both sides, on Web Crypto, which browsers and Node share.
 *
 * The canonical form is JSON without spaces: keys sorted by code point, `null` left out as a value of a key (not in
 * lists), numbers without a fraction written as integers with all of their digits, and no unnecessary escapes. At the
 * top level `security` and `_signature` are left out, and the fields that the caller names.
 *
 * The content of `security` is therefore not signed. A nonce belongs in `metadata`, which is signed.
 */
export function canonicalMessage(payload: DataObject, ignore: readonly string[] = []): string {
  return messageText(payload, ignore)
}

const UNSIGNED = ['security', '_signature']

/** An event that passes through other orchestrators collects their names, so its signature cannot cover them. */
export const EVENT_UNSIGNED: readonly string[] = ['bubbling_chain']

/** The signature of a message, in hex. `ignore`: `EVENT_UNSIGNED` for events, nothing for all others. */
export async function signMessage(payload: DataObject, secret: string, ignore?: readonly string[]): Promise<string> {
  const bytes = await crypto.subtle.sign('HMAC', await keyOf(secret), encode(canonicalMessage(payload, ignore)))
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * How releases of existing workers interpret a message before they sign it. The newest come first. They differ in
 * numbers (`8.0` as written, or as an integer) and in nulls (left out of objects, also out of lists, or kept).
 */
interface Reading {
  readonly numbers: 'whole' | 'written'
  readonly nulls: 'leave objects' | 'leave lists' | 'stay'
}

const READINGS: readonly Reading[] = [
  { numbers: 'whole', nulls: 'leave objects' },
  { numbers: 'written', nulls: 'leave lists' },
  { numbers: 'written', nulls: 'leave objects' },
  { numbers: 'whole', nulls: 'leave lists' },
  { numbers: 'written', nulls: 'stay' },
]

/**
 * Whether the signature matches a message, in any of the interpretations. Takes the text of the message as received,
 * because parsing loses the notation of numbers. A wrong signature takes as long as the right one of its
 * interpretation.
 */
export async function verifyMessage(
  text: string,
  secret: string,
  signature: string,
  ignore?: readonly string[],
): Promise<boolean> {
  if (!/^[\da-f]{64}$/i.test(signature)) return false
  const bytes = Uint8Array.from(signature.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  const message: unknown = JSON.parse(literalText(text))
  if (!isJsonObject(message)) return false
  const key = await keyOf(secret)
  for (const reading of READINGS) {
    const read = encode(messageText(message, ignore, writerOf(reading)))
    if (await crypto.subtle.verify('HMAC', key, bytes, read)) return true
  }
  return false
}

/** Signs a message that already has its `timestamp` (whole seconds), in the way of the newest workers. */
export async function withSignature<T extends DataObject>(
  payload: T,
  signer: { readonly id: string; readonly secret: string },
  ignore?: readonly string[],
): Promise<T & { readonly security: { readonly signature: string; readonly signer_id: string } }> {
  const signature = await signMessage(payload, signer.secret, ignore)
  return { ...payload, security: { signature, signer_id: signer.id } }
}

/** SHA-256 in hex of the canonical form: workers use it to identify a list of skills without sending it. */
export async function canonicalHash(value: DataObject): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', encode(objectText(value, OURS)))
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function keyOf(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

function messageText(payload: DataObject, ignore: readonly string[] = [], writer: Writer = OURS): string {
  const left = new Set([...UNSIGNED, ...ignore])
  return objectText(payload, writer, (key) => !left.has(key))
}

interface Writer {
  readonly nulls: Reading['nulls']
  readonly scalar: (value: Exclude<Data, readonly Data[] | DataObject>) => string
}

const OURS: Writer = { nulls: 'leave objects', scalar: scalarText }

/** For messages in which every number is kept as written. */
function writerOf({ numbers, nulls }: Reading): Writer {
  const scalar: Writer['scalar'] = (value) => {
    if (typeof value !== 'string') return scalarText(value)
    if (!isMarkedNumber(value)) return JSON.stringify(unmarkedText(value))
    const literal = value.slice(1)
    if (numbers === 'written') return literal
    const number = numberFrom(literal)
    return number === 'overflow' ? literal : scalarText(number)
  }
  return { nulls, scalar }
}

/** Written by hand: a JavaScript object puts keys that look like integers first, regardless of their order. */
function objectText(value: DataObject, writer: Writer, isKept: (key: string) => boolean = () => true): string {
  const isThere = (one: Data | undefined): boolean => one !== undefined && (one !== null || writer.nulls === 'stay')
  const keys = Object.keys(value).filter((key) => isKept(key) && isThere(value[key]))
  const members = keys.sort(byCodePoint).map((key) => `${JSON.stringify(key)}:${textOf(value[key] ?? null, writer)}`)
  return `{${members.join(',')}}`
}

function textOf(value: Data, writer: Writer): string {
  if (isList(value)) {
    const items = writer.nulls === 'leave lists' ? value.filter((one) => one !== null) : value
    return `[${items.map((one) => textOf(one, writer)).join(',')}]`
  }
  return isDataObject(value) ? objectText(value, writer) : writer.scalar(value)
}

function scalarText(value: Exclude<Data, readonly Data[] | DataObject>): string {
  if (typeof value === 'bigint' || isExactNumber(value)) return String(value)
  // Beyond this JavaScript rounds its output, or uses an exponent; others write every digit.
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) return String(BigInt(value))
  return JSON.stringify(value)
}

function isList(value: Data): value is readonly Data[] {
  return Array.isArray(value)
}

function isDataObject(value: Data): value is DataObject {
  return typeof value === 'object' && value !== null && !isExactNumber(value)
}

/** JavaScript sorts by UTF-16 code units, which differs where a character takes two units. */
function byCodePoint(a: string, b: string): number {
  let at = 0
  while (at < a.length && at < b.length) {
    const [left, right] = [a.codePointAt(at) ?? 0, b.codePointAt(at) ?? 0]
    if (left !== right) return left - right
    at += left > 0xff_ff ? 2 : 1
  }
  return a.length - b.length
}
