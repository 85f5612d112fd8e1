/** A collector that takes everything and keeps nothing: the cheapest one that there can be. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { obeyParent } from '../channel.ts'
import type { CollectorOrders } from './orders.ts'

const taken = { requests: 0, bytes: 0 }

const server = createServer((request, reply) => {
  request.on('data', (piece: Buffer) => {
    taken.bytes += piece.length
  })
  request.on('end', () => {
    taken.requests += 1
    reply.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
})

obeyParent<CollectorOrders>({
  listen: () =>
    new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => {
        resolve({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
      })
    }),
  taken: async () => taken,
  close: async () => {
    server.closeAllConnections()
    server.close()
  },
})
