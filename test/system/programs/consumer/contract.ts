import { contract } from 'impresario'
import { z } from 'zod'

export const greeter = contract('greeter', {
  greet: { input: z.object({ name: z.string() }), output: z.object({ greeting: z.string() }) },
})
