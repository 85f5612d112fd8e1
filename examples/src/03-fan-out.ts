// Many tasks at once, and one place where they meet: counts the words of several texts side by side.
//
//   npx tsx -C source examples/src/03-fan-out.ts
//
// oxlint-disable no-console -- this is a whole program, with a server of its own
import { createClient } from 'impresario/client'
import { blueprint, contract } from 'impresario'
import { createServer } from 'impresario/server'
import { createWorker } from 'impresario/worker'
import { z } from 'zod'

const texts = contract('texts', {
  count: { input: z.object({ text: z.string() }), output: z.object({ words: z.number() }) },
})

const countAll = blueprint(
  'count_all',
  {
    input: z.object({ texts: z.array(z.string()) }),
    history: z.object({ total: z.number(), failed: z.number() }),
    output: z.object({ total: z.number(), failed: z.number() }),
    start: 'count',
  },
  (state) => ({
    // One branch per text. Branches may also be whole blueprints: see `child` in impresario.
    count: state.handler((context, actions) => {
      const counts = context.initialData.texts.map((text) => texts.count({ text }, { attemptsMax: 1 }))
      return actions.dispatchParallel({ counts }, { into: 'sum' })
    }),

    // Runs once, after the last branch. A branch that failed is a result too, and this is where it is judged.
    sum: state.aggregator({ counts: [texts.count] }, ({ results: { counts } }, actions) => {
      const done = counts.filter((count) => count.status === 'success')
      return actions.transitionTo('done', {
        total: done.reduce((sum, { data }) => sum + data.words, 0),
        failed: counts.length - done.length,
      })
    }),

    done: state.end({ result: (context) => context.written('total', 'failed') }),
  }),
)

const server = createServer({
  blueprints: [countAll],
  settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'warn' },
})
const { address } = await server.start()

// Three workers share the branches; each takes up to two at once.
const workers = ['anna', 'ben', 'clara'].map((id) => {
  const worker = createWorker({ id, concurrency: 2, transport: server.localTransport() })
  return worker.handle(texts, {
    count: ({ text }) => {
      if (text === '') throw new Error('There is nothing to count.')
      return { words: text.split(/\s+/).length }
    },
  })
})
await Promise.all(workers.map((worker) => worker.start()))

const client = createClient({ url: address })
const job = await client.start(countAll, { texts: ['to be or not to be', 'that is the question', '', 'exit ghost'] })
console.log(await job.result())

await Promise.all(workers.map((worker) => worker.stop()))
await server.stop()
