/**
 * The least that such a server can cost on Node: polls hang until their time is up, everything else is answered at once.
 * No routes, no checks, no storage; one timer for all polls.
 */
import { LIMITS } from '@impresario/protocol'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'

const EVERY_MS = 250
const waiting = new Map<ServerResponse, number>()

function answer(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length })
  response.end(text)
}

const server = createServer({ keepAliveTimeout: LIMITS.keepAliveMs }, (request, response) => {
  request.resume()
  request.once('end', () => {
    if (request.url?.endsWith('/tasks/batch') === true) waiting.set(response, performance.now() + LIMITS.longPollMs)
    else answer(response, '{"status":"ok"}')
  })
})
setInterval(() => {
  const now = performance.now()
  // In the order of their ends.
  for (const [response, until] of waiting) {
    if (until > now) break
    waiting.delete(response)
    if (!response.destroyed) answer(response, '{"tasks":[]}')
  }
}, EVERY_MS)
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) {
    process.stdout.write(`{"address":"http://127.0.0.1:${address.port}"}\n`)
  }
})
