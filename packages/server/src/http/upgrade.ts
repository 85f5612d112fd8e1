import { IncomingMessage } from 'node:http'

const SOCKET_PATH = /^\/_worker\/ws(?:[/?]|$)/

/**
 * A request that becomes a socket only where there is one.
 *
 * As soon as a server has any WebSocket, Node takes every request that offers another protocol for one: those of programs
 * that only offer HTTP/2 (`Upgrade: h2c`, as the client of Java does by itself) lose their bodies and are refused, and
 * every path can be held open as a socket. Who offers what we do not take gets the answer that it would have got without
 * the offer (RFC 9110, 7.8).
 */
export class OfferedMessage extends IncomingMessage {
  declare private offered: boolean | null

  get upgrade(): boolean {
    return this.offered === true && (this.method === 'CONNECT' || this.#isSocket())
  }

  /** Node sets it, first before this object is complete: hence no private field. */
  set upgrade(offered: boolean | null) {
    this.offered = offered
  }

  #isSocket(): boolean {
    return this.headers.upgrade?.toLowerCase() === 'websocket' && SOCKET_PATH.test(this.url ?? '')
  }
}
