// A job that waits for a person, and what happens without an answer.
//
//   npx tsx -C source examples/src/04-approval.ts
//
// oxlint-disable no-console -- this is a whole program, with a server of its own
import { createClient } from 'impresario/client'
import { blueprint } from 'impresario'
import { createServer } from 'impresario/server'
import { z } from 'zod'

const refund = blueprint(
  'refund',
  {
    input: z.object({ euros: z.number().positive(), patience: z.enum(['1ms', '7d']).default('7d') }),
    output: z.string(),
    start: 'check',
  },
  (state) => ({
    // Small sums need nobody. The first condition that holds decides.
    check: state
      .when('context.initial_data.euros < 50', (_context, actions) => actions.transitionTo('paid'))
      .otherwise((_context, actions) => actions.transitionTo('ask')),

    // The job stops here and costs nothing while it waits, over restarts too.
    ask: state.handler(({ initialData: { euros, patience } }, actions) =>
      actions.awaitHumanApproval({
        message: `Pay ${euros} euros back?`,
        transitions: { approved: 'paid', rejected: 'refused', expired: 'refused' },
        expires: patience,
      }),
    ),

    paid: state.end({ result: (context) => `${context.initialData.euros} euros paid back` }),
    refused: state.end({ outcome: 'failed' }),
  }),
)

const server = createServer({
  blueprints: [refund],
  settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'warn' },
})
const { address } = await server.start()
const client = createClient({ url: address })

const small = await client.start(refund, { euros: 20 })
console.log(await small.result())

// A person would see the job on a screen and press a button; the button calls `approve`.
const large = await client.start(refund, { euros: 900 })
for await (const now of large.watch()) {
  const comment = 'The customer is right.'
  if (now.status === 'waiting_for_human') await client.approve(now.id, 'approved', { comment })
}
console.log(await large.result())

// Nobody answers this one in time.
const forgotten = await client.start(refund, { euros: 900, patience: '1ms' })
const { status, currentState: state } = await forgotten.wait()
console.log(`${status} in "${state}"`)

await server.stop()
