// The whole of Impresario in one file: what can be done, the script, a server, a worker, and somebody who asks.
//
//   npx tsx -C source examples/src/02-hello.ts
//
// oxlint-disable no-console -- this is a whole program, with a server of its own
import { createClient } from 'impresario/client'
import { blueprint, contract } from 'impresario'
import { createServer } from 'impresario/server'
import { createWorker } from 'impresario/worker'
import { z } from 'zod'

// What workers can do.
const greeter = contract('greeter', {
  greet: { input: z.object({ name: z.string() }), output: z.object({ greeting: z.string() }) },
})

// The script: one task, and its result is the result of the job.
const hello = blueprint(
  'hello',
  {
    input: z.object({ name: z.string() }),
    output: z.string(),
    start: 'greet',
  },
  (state) => ({
    greet: state.handler((context, actions) =>
      actions.dispatchTask(greeter.greet, { params: context.initialData, transitions: { success: 'greeted' } }),
    ),
    greeted: state.end({ result: (context) => context.resultOf(greeter.greet).greeting }),
  }),
)

// The director. Any free port, and nothing is written to disk.
const server = createServer({
  blueprints: [hello],
  settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'warn' },
})
const { address } = await server.start()

// A performer, in the same process. With `url` and `token` instead of `transport` it could be anywhere.
const worker = createWorker({ transport: server.localTransport() })
worker.handle(greeter, { greet: ({ name }) => ({ greeting: `Hello, ${name}!` }) })
await worker.start()

// And somebody who asks. `result` is a string, and the compiler knows it.
const client = createClient({ url: address })
const job = await client.start(hello, { name: 'Ada' })
console.log(await job.result())

await worker.stop()
await server.stop()
