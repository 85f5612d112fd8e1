import { z } from 'zod'
import { LIMITS } from './limits.ts'

const data = z.record(z.string(), z.unknown()).nullish()

export const rerunJobRequest = z.strictObject({
  from_state: z
    .string()
    .min(1)
    .max(LIMITS.identifierCharsMax)
    .nullish()
    .describe('The state to begin in; the first one without it, with an empty state history.'),
  initial_data: data.describe('Instead of what the job began with; checked by the blueprint’s input schema.'),
  state_history: data.describe('Instead of what its states had written. Only with `from_state`.'),
})

export const jobCompensation = z.looseObject({
  outcome: z.string().describe('How the job ends then.'),
  left: z.array(z.string()).describe('States that are left to undo, in this order; the first is under way.'),
  undone: z.array(z.string()),
})

export const usageBody = z.object({
  usd: z.number(),
  tokens: z.number(),
  seconds: z.number().describe('Of machines that are paid by time, such as GPUs.'),
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

export const jobWork = z.looseObject({
  waiting: z.int().describe('Tasks that no worker has picked up yet.'),
  delayed: z.int().describe('Tasks that are tried again later.'),
  running: z.int().describe('Tasks that workers have in their hands.'),
  workers: z.array(z.string()).describe('Ids of these workers, each once, ten at most.'),
  children: z.array(z.string()).describe('Ids of children that have not ended, ten at most.'),
  unseen: z.int().optional().describe('Tasks beyond those that were looked up; absent when all were.'),
})
