// Every part that starts a thread or loads something big: the file storage, the history, the picture, the web server.
import process from 'node:process'
import { createClient } from 'impresario/client'
import { createOrchestrator } from 'impresario/embedded'
import { createServer, renderGraph } from 'impresario/server'
import { createWorker } from 'impresario/worker'
import { hello } from './blueprints/hello.ts'
import { greeter } from './contract.ts'

const orchestrator = createOrchestrator({
  blueprints: [hello],
  settings: {
    storageUrl: 'file:./embedded-data',
    historyDatabaseUri: 'sqlite:./embedded-history.db',
    logLevel: 'warn',
  },
})
await orchestrator.start()
const worker = createWorker({ transport: orchestrator.localTransport() })
worker.handle(greeter, { greet: ({ name }) => ({ greeting: `Hello, ${name}!` }) })
await worker.start()
const job = await orchestrator.client().start(hello, { name: 'Grace' })
const embedded: string = await job.result()
await worker.stop()
await orchestrator.stop()

const server = createServer({
  blueprints: [hello],
  settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'warn' },
})
const { address } = await server.start()
const { id } = await createClient({ url: address }).start(hello, { name: 'Alan' })
await server.stop()

const picture = await renderGraph(hello, { format: 'svg' })
process.stdout.write(`${JSON.stringify({ embedded, id, picture: picture.slice(0, 4) })}\n`)
