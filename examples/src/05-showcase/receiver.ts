import { createServer } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { verifyWebhook, WebhookError } from 'impresario/client'
import type { WebhookBody } from 'impresario/client'

/** Somebody else's server, which wants to know what becomes of its orders. It believes only what is signed. */
export class Receiver {
  readonly #server: Server
  /** By id: a message that comes twice counts once. */
  readonly #verified = new Map<string, WebhookBody>()
  #secret: string | undefined
  #refused = 0

  constructor() {
    this.#server = createServer((request, response) => {
      this.#take(request).then(
        (status) => response.writeHead(status).end(),
        () => response.writeHead(500).end(),
      )
    })
  }

  get verified(): readonly WebhookBody[] {
    return [...this.#verified.values()]
  }

  get refused(): number {
    return this.#refused
  }

  get port(): number {
    return addressOf(this.#server).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/orders`
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(0, '127.0.0.1', resolve)
    })
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => {
      this.#server.close(resolve)
    })
    this.#server.closeAllConnections()
    await closed
  }

  /** Both sides know it, and nobody else. */
  shareSecret(secret: string): void {
    this.#secret = secret
  }

  /** The status to answer with. The body is verified as it came, byte for byte, before anything parses it. */
  async #take(request: IncomingMessage): Promise<number> {
    const bytes = await buffer(request)
    if (this.#secret === undefined) return 503
    try {
      const { id, body } = await verifyWebhook(bytes, request.headers, this.#secret)
      this.#verified.set(id, body)
      return 204
    } catch (error) {
      if (!(error instanceof WebhookError)) throw error
      this.#refused += 1
      return 401
    }
  }
}

function addressOf(server: Server): AddressInfo {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The receiver listens on no port.')
  return address
}
