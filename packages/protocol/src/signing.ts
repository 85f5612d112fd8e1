import { isJsonObject } from './json.ts'
import type { Json, JsonObject } from './json.ts'

/**
 * Signatures of the worker protocol: hex of HMAC-SHA256 over a canonical form of the message, keyed with the worker's own
 * token. One implementation for both sides, on Web Crypto, which browsers and Node share.
 *
 * The canonical form is JSON without spaces: keys in the order of their code points, `null` left out as a value of a key
 * (not in lists), numbers without a fraction written as whole numbers, nothing escaped that need not be. At the top
 * `security` and `_signature` are left out, and what the caller names besides.
 *
 * What stands in `security` is therefore not signed. A nonce belongs into `metadata`, which is.
 */
export function canonicalMessage(payload: JsonObject, ignore: readonly string[] = []): string {
  const left = new Set([...UNSIGNED, ...ignore])
  return objectText(payload, (key) => !left.has(key))
}

const UNSIGNED = ['security', '_signature']

/** On its way through other orchestrators an event collects their names, so that its signature cannot cover them. */
export const EVENT_UNSIGNED: readonly string[] = ['bubbling_chain']

/** The signature of a message, in hex. `ignore`: `EVENT_UNSIGNED` for events, nothing for all others. */
export async function signMessage(payload: JsonObject, secret: string, ignore?: readonly string[]): Promise<string> {
  const bytes = await crypto.subtle.sign('HMAC', await keyOf(secret), encode(canonicalMessage(payload, ignore)))
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Whether the signature is the message's own. Takes as long for a wrong one as for the right one. */
export async function verifyMessage(
  payload: JsonObject,
  secret: string,
  signature: string,
  ignore?: readonly string[],
): Promise<boolean> {
  if (!/^[\da-f]{64}$/i.test(signature)) return false
  const bytes = Uint8Array.from(signature.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  return crypto.subtle.verify('HMAC', await keyOf(secret), bytes, encode(canonicalMessage(payload, ignore)))
}

/** Signs a message that has its `timestamp` (whole seconds) already, the way the newest workers do. */
export async function withSignature<T extends JsonObject>(
  payload: T,
  signer: { readonly id: string; readonly secret: string },
  ignore?: readonly string[],
): Promise<T & { readonly security: { readonly signature: string; readonly signer_id: string } }> {
  const signature = await signMessage(payload, signer.secret, ignore)
  return { ...payload, security: { signature, signer_id: signer.id } }
}

/** SHA-256 in hex of the canonical form: how workers name a list of skills without sending it. */
export async function canonicalHash(value: JsonObject): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', encode(objectText(value, () => true)))
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function keyOf(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

/** Written by hand: an object of JavaScript puts keys that look like numbers first, whatever their order was. */
function objectText(value: JsonObject, isKept: (key: string) => boolean): string {
  const keys = Object.keys(value).filter((key) => isKept(key) && value[key] !== null && value[key] !== undefined)
  const members = keys.sort(byCodePoint).map((key) => `${JSON.stringify(key)}:${textOf(value[key] ?? null)}`)
  return `{${members.join(',')}}`
}

function textOf(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((one: Json) => textOf(one)).join(',')}]`
  if (isJsonObject(value)) return objectText(value, () => true)
  // Beyond this JavaScript rounds what it writes, or writes an exponent; others write every digit.
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) return String(BigInt(value))
  return JSON.stringify(value)
}

/** Sorting by UTF-16, as JavaScript does, differs where a character takes two units. */
function byCodePoint(a: string, b: string): number {
  let at = 0
  while (at < a.length && at < b.length) {
    const [left, right] = [a.codePointAt(at) ?? 0, b.codePointAt(at) ?? 0]
    if (left !== right) return left - right
    at += left > 0xff_ff ? 2 : 1
  }
  return a.length - b.length
}
