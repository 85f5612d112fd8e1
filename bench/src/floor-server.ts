/** A minimal HTTP server: the floor that ours is measured against. */
import { createServer } from 'node:http'

const server = createServer((_request, response) => {
  response.end('{}')
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.(typeof address === 'object' && address !== null ? address.port : 0)
})
process.on('disconnect', () => process.exit(0))
