import type { WireQuery } from './file-transport.ts'

/** A request in the words of the API, below its prefix. */
export interface WireRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The parts of the path, as they are. */
  readonly path: readonly string[]
  readonly query?: WireQuery
  readonly body?: object
  /** By which the server knows a repetition. */
  readonly key?: string
  /** It may be sent twice without harm. A GET always may. */
  readonly repeatable?: boolean
}

export interface WireAnswer {
  readonly body: unknown
  /** Of a list: where the next page begins. */
  readonly next?: string
}

/** Asks for what is about automations, runs, agents, tools and the audit log. */
export interface RequestTransport {
  ask(request: WireRequest): Promise<WireAnswer>
}
