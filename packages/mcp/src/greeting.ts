import type { JsonObject } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'
import { sealed, unsealed } from './seal.ts'
import { knowsForms, knowsLinks } from './session.ts'

/*
 * A client of 2025-11-25 says once, in its greeting, what it can do. The id of its session carries this, sealed for its caller,
 * so that any instance knows it and none has to remember it.
 */

export const SESSION_HEADER = 'mcp-session-id'

const PURPOSE = 'session'

/** The id of a session for the client of this message. `undefined`: the message is no greeting. */
export function sessionFor(message: unknown, key: Uint8Array, callerId: string): string | undefined {
  if (!isMessage(message) || message['method'] !== 'initialize' || !isJsonObject(message['params'])) return undefined
  const { capabilities } = message['params']
  const told = isJsonObject(capabilities) ? capabilities : {}
  const modes = [...(knowsForms(told) ? ['form'] : []), ...(knowsLinks(told) ? ['url'] : [])]
  return sealed({ modes }, key, `${PURPOSE}\0${callerId}`)
}

/** What a client said in its greeting. `undefined`: the session is not one of this caller. */
export function greetedIn(session: string, key: Uint8Array, callerId: string): JsonObject | undefined {
  const payload = unsealed(session, key, `${PURPOSE}\0${callerId}`)
  if (payload === undefined || !Array.isArray(payload['modes'])) return undefined
  const { modes } = payload
  const known = ['form', 'url'].filter((mode) => modes.includes(mode))
  return known.length === 0 ? {} : { elicitation: Object.fromEntries(known.map((mode) => [mode, {}])) }
}

/** Boundary: the body of a request was read from JSON. */
export function isMessage(body: unknown): body is JsonObject {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
}
