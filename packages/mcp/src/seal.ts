import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Json, JsonObject } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'

/** A small value that goes through a client and comes back: it can be read there, and not be changed. */
export function sealed(payload: JsonObject, key: Uint8Array, purpose: string): string {
  const text = Buffer.from(JSON.stringify(payload)).toString('base64url')
  return `${text}.${signatureOf(text, key, purpose).toString('base64url')}`
}

/** What was sealed with this key for this purpose; `undefined` for everything else. */
export function unsealed(token: string, key: Uint8Array, purpose: string): JsonObject | undefined {
  const [text = '', signature = '', ...more] = token.length > TOKEN_CHARS_MAX ? [] : token.split('.')
  const given = Buffer.from(signature, 'base64url')
  const right = signatureOf(text, key, purpose)
  if (more.length > 0 || given.length !== right.length || !timingSafeEqual(given, right)) return undefined
  // Only what we wrote ourselves gets here.
  const payload = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Json
  return isJsonObject(payload) ? payload : undefined
}

const TOKEN_CHARS_MAX = 2_000

function signatureOf(text: string, key: Uint8Array, purpose: string): Buffer {
  return createHmac('sha256', key).update(`${purpose}\0${text}`).digest()
}
