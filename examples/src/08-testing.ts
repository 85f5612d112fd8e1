// How to test a blueprint: in memory, on a virtual clock, with workers that are functions. Days pass in milliseconds.
import { blueprint, contract } from 'impresario'
import { startTestKit } from 'impresario/testing'
import { z } from 'zod'
// oxlint-disable no-console -- this is a whole program

const mail = contract('mail', {
  send: { input: z.object({ to: z.string(), text: z.string() }), output: z.object({ messageId: z.string() }) },
})

const trial = blueprint(
  'trial',
  { input: z.object({ email: z.string() }), output: z.object({ reminders: z.number() }), start: 'welcome' },
  (state) => ({
    welcome: state.handler((context, actions) =>
      actions.dispatchTask(mail.send, {
        params: { to: context.initialData.email, text: 'Your trial begins.' },
        transitions: { success: 'wait' },
      }),
    ),
    wait: state.handler((_context, actions) => actions.sleep('14d', { to: 'remind' })),
    remind: state.handler((context, actions) =>
      actions.dispatchTask(mail.send, {
        params: { to: context.initialData.email, text: 'Your trial ends.' },
        transitions: { success: 'over' },
      }),
    ),
    over: state.end({ result: () => ({ reminders: 1 }) }),
  }),
)

const kit = await startTestKit({ blueprints: [trial], startAt: '2026-03-01T09:00:00Z' })
let outages = 2
const worker = await kit.addWorker(mail.send, ({ text }) => {
  if (text.includes('ends') && outages-- > 0) throw new Error('The mail server is down.')
  return { messageId: text }
})

const job = await kit.client().start(trial, { email: 'ada@example.org' })
await kit.settle()
console.log(`${worker.deliveries.length} mail, and then it is ${(await job.status()).currentState}`)

await kit.crash() // the orchestrator dies, and another one starts on the same data
const result = await kit.result(job) // two weeks and two retries later
console.log(`${result.reminders} reminder on ${kit.now.toISOString().slice(0, 10)}`)
console.log(`attempts: ${worker.deliveries.map(({ attempt }) => attempt).join(', ')}`)
await kit.close()
