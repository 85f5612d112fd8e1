import { createServer, type Server } from 'node:http'
import { ImpresarioError } from '@impresario/protocol'

export interface Health {
  readonly worker_id: string
  readonly status: string
  readonly running: number
  readonly orchestrators: readonly { readonly name: string; readonly registered: boolean }[]
}

/** Answers `GET /health` while the worker lives, and nothing else. */
export class HealthPage {
  readonly #health: () => Health
  #server: Server | undefined

  constructor(health: () => Health) {
    this.#health = health
  }

  get port(): number | undefined {
    const address = this.#server?.address()
    return typeof address === 'object' && address !== null ? address.port : undefined
  }

  async listen(port: number): Promise<void> {
    const server = createServer((request, response) => {
      const isHealth = request.url?.split('?', 1)[0] === '/health'
      const isRead = request.method === 'GET' || request.method === 'HEAD'
      const status = isHealth ? (isRead ? 200 : 405) : 404
      response.writeHead(status, {
        'content-type': 'application/json',
        'cache-control': 'no-store',
        connection: 'close',
      })
      response.end(
        request.method === 'HEAD' ? '' : JSON.stringify(status === 200 ? this.#health() : { error: 'Not found' }),
      )
    })
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) => {
        const message = `WORKER_PORT: nothing can listen on port ${port}: ${cause.message}`
        reject(new ImpresarioError('INVALID_CONFIGURATION', message, { cause }))
      })
      server.listen(port, resolve)
    })
  }

  async close(): Promise<void> {
    const server = this.#server
    if (server?.listening !== true) return
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }
}
