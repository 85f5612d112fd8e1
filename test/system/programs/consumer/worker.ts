import { createWorker } from 'impresario/worker'
import { greeter } from './contract.ts'

const worker = createWorker()
worker.handle(greeter, { greet: ({ name }) => ({ greeting: `Hello, ${name}!` }) })
await worker.run()
