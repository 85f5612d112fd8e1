import process from 'node:process'
import { startTestKit } from 'impresario/testing'
import { hello } from './blueprints/hello.ts'
import { greeter } from './contract.ts'

const kit = await startTestKit({ blueprints: [hello] })
const worker = await kit.addWorker(greeter, { greet: ({ name }) => ({ greeting: `Hello, ${name}!` }) })
const job = await kit.client().start(hello, { name: 'Edsger' })
await kit.crash()
const greeting: string = await kit.result(job)
process.stdout.write(`${greeting} ${worker.deliveries.length}\n`)
await kit.close()
