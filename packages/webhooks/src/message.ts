import { isJsonObject, traceContextOf, writeJson } from '@impresario/protocol'
import type { Json } from '@impresario/protocol'

/** One message for one address, as it lies in the outbox. */
export type OutgoingMessage = {
  readonly messageId: string
  readonly url: string
  readonly clientId: string
  readonly jobId: string
  readonly event: string
  /** When it happened, in milliseconds since 1970. */
  readonly at: number
  /** The trace that its job belongs to; sent along as headers. */
  readonly tracing?: Readonly<Record<string, string>>
  /** In wire form. */
  readonly body: Json
}

/** The outbox outlives versions of this program, so its items are read with care. `undefined`: it is no message. */
export function readMessage(payload: Json): OutgoingMessage | undefined {
  if (!isJsonObject(payload)) return undefined
  const { messageId, url, clientId, jobId, event, at, body } = payload
  if (typeof messageId !== 'string' || messageId === '') return undefined
  if (typeof url !== 'string' || typeof clientId !== 'string' || typeof jobId !== 'string') return undefined
  if (typeof event !== 'string' || typeof at !== 'number' || body === undefined) return undefined
  const { tracing } = payload
  const trace = isJsonObject(tracing) ? traceContextOf(tracing) : undefined
  return { messageId, url, clientId, jobId, event, at, body, ...(trace === undefined ? {} : { tracing: { ...trace } }) }
}

/** What is sent and signed. */
export function bodyText(body: Json): string {
  return typeof body === 'string' ? body : writeJson(body)
}
