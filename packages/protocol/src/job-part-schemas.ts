import { z } from 'zod'

export const jobCompensation = z.looseObject({
  outcome: z.string().describe('How the job ends then.'),
  left: z.array(z.string()).describe('States that are left to undo, in this order; the first is under way.'),
  undone: z.array(z.string()),
})

export const jobFailure = z.looseObject({
  code: z.string(),
  message: z.string(),
  state: z.string().describe('Where it happened.'),
  attempts: z.int().describe('Tries of the task that failed.'),
  task: z.looseObject({ id: z.string(), type: z.string() }).optional(),
  child: z
    .looseObject({
      job_id: z.string(),
      blueprint_name: z.string(),
      status: z.string(),
      code: z.string().optional().describe('Of its own error.'),
    })
    .optional(),
})
