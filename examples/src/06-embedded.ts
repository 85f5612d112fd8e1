// The orchestrator inside another program: no server, no port, nothing to install. Jobs survive a crash of the program,
// because they are kept in a file.
//
//   npx tsx -C source examples/src/06-embedded.ts
//
// oxlint-disable no-console -- this is a whole program, with an orchestrator of its own
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint, contract } from 'impresario'
import { createOrchestrator } from 'impresario/embedded'
import { createWorker } from 'impresario/worker'
import { z } from 'zod'

const kitchen = contract('kitchen', {
  cook: { input: z.object({ dish: z.string() }), output: z.object({ plate: z.string() }) },
})

const order = blueprint(
  'order',
  {
    input: z.object({ dish: z.string() }),
    output: z.string(),
    start: 'cook',
  },
  (state) => ({
    cook: state.handler((context, actions) =>
      actions.dispatchTask(kitchen.cook, { params: context.initialData, transitions: { success: 'served' } }),
    ),
    served: state.end({ result: (context) => context.resultOf(kitchen.cook).plate }),
  }),
)

const directory = await mkdtemp(join(tmpdir(), 'impresario-'))
const settings = { storageUrl: `file:${directory}`, logLevel: 'warn' } as const

// First life of the program: it takes an order, and ends before anybody has cooked.
const morning = createOrchestrator({ blueprints: [order], settings })
await morning.start()
const { id } = await morning.client().start(order, { dish: 'soup' })
await morning.stop()

// Second life: the order is still there, and now there is a cook.
const evening = createOrchestrator({ blueprints: [order], settings })
await evening.start()
const cook = createWorker({ transport: evening.localTransport() })
cook.handle(kitchen, { cook: ({ dish }) => ({ plate: `a plate of ${dish}` }) })
await cook.start()
console.log(await evening.client().job(id, order).result())

await cook.stop()
await evening.stop()
await rm(directory, { recursive: true })
