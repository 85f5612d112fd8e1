import { blueprint } from 'impresario'
import { z } from 'zod'
import { greeter } from '../contract.ts'

export const hello = blueprint(
  'hello',
  { input: z.object({ name: z.string() }), output: z.string(), start: 'greet' },
  (state) => ({
    greet: state.handler((context, actions) =>
      actions.dispatchTask(greeter.greet, { params: context.initialData, transitions: { success: 'greeted' } }),
    ),
    greeted: state.end({ result: (context) => context.resultOf(greeter.greet).greeting }),
  }),
)
