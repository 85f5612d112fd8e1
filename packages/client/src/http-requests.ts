import { CLIENT_API_PREFIX, HEADERS, stringifyExact } from '@impresario/protocol'
import type { Connection } from './connection.ts'
import type { RequestTransport, WireAnswer, WireRequest } from './request-transport.ts'

/** Requests over HTTP. */
export class HttpRequests implements RequestTransport {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async ask({ method, path, query, body, key, repeatable }: WireRequest): Promise<WireAnswer> {
    const address = [CLIENT_API_PREFIX, ...path.map((part) => encodeURIComponent(part))].join('/')
    const answer = await this.#connection.call(address, {
      method,
      repeatable: method === 'GET' || key !== undefined || repeatable === true,
      ...(query === undefined ? {} : { query }),
      ...(body === undefined ? {} : { body: stringifyExact(body) }),
      ...(key === undefined ? {} : { headers: { [HEADERS.idempotencyKey]: key } }),
    })
    const next = answer.headers.get(HEADERS.nextCursor)
    return next === null || next === '' ? { body: answer.body } : { body: answer.body, next }
  }
}
