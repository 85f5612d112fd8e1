import type { JsonObject } from '@impresario/protocol'
import type { Api } from './api.ts'

/** Who calls, as the HTTP side hands it on. */
export interface Caller {
  readonly api: Api
  /** Where people reach the server. */
  readonly base: string
  /** Whose calls these are: what was sealed for one caller is worth nothing for another. */
  readonly callerId: string
  /** The connection is gone, or the server stops. */
  readonly signal: AbortSignal
}

/** With what a client of an older revision said in its greeting. */
export interface CallerInfo extends Caller {
  readonly greeted: JsonObject
}
