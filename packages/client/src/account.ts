import { CLIENT_API_PREFIX } from '@impresario/protocol'
import type { Connection } from './connection.ts'

export const ACCOUNT_PATH = `${CLIENT_API_PREFIX}/account`
const RELOAD_PATH = `${CLIENT_API_PREFIX}/admin/reload`

/** Whom a token belongs to, and how much it may. */
export interface Account {
  readonly client_id: string
  readonly role: 'viewer' | 'client' | 'admin'
  readonly plan: string | null
  /** Jobs that may be started in a month; `null` without a limit. */
  readonly quota: {
    readonly period: string
    readonly limit: number
    readonly used: number
    readonly left: number
    /** ISO 8601. */
    readonly renews_at: string
  } | null
  readonly limits: {
    readonly body_bytes: number
    readonly batch_items: number
    readonly page_size: number
    readonly requests: { readonly limit: number; readonly period_seconds: number } | null
  }
}

/** How many clients, workers and schedules are in force now. */
export interface Reloaded {
  readonly status: string
  readonly clients: number
  readonly workers: number
  readonly schedules: number
  /** Whom it reached: all instances on the storage, each with the files of its own machine, or the one that was asked. */
  readonly scope: 'all_instances' | 'this_instance'
}

/** Changes of the running server. Needs the token of an admin. */
export class Admin {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Reads the files of clients, workers and schedules anew; a wrong one changes nothing, and the refusal says where. */
  async reload(): Promise<Reloaded> {
    const answer = await this.#connection.call(RELOAD_PATH, { method: 'POST', repeatable: true })
    return reloadedOf(answer.body)
  }
}

/** The boundary at which a server's answer is believed. */
function reloadedOf(body: unknown): Reloaded {
  return body as Reloaded
}
