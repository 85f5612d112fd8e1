import { z } from 'zod'

export const statusBody = z.looseObject({ status: z.string() })
export const logLevelBody = z.looseObject({ level: z.string(), before: z.string() })
export const readinessBody = z.looseObject({
  status: z.enum(['ready', 'not_ready']),
  components: z.record(z.string(), z.looseObject({ status: z.string(), reason: z.string().nullish() })),
})
