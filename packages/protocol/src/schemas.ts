import { z } from 'zod'
import { LIMITS } from './limits.ts'

export * from './blueprint-schemas.ts'
export * from './client-schemas.ts'
export * from './file-schemas.ts'
export * from './job-part-schemas.ts'
export * from './history-schemas.ts'
export * from './schedule-schemas.ts'
export * from './server-schemas.ts'
export * from './view-schemas.ts'

/**
 * The schemas that the server validates requests with; the types are in `wire.ts`. These become JSON Schema, so they
 * contain no transforms and no refinements. They are tolerant on purpose: unknown fields stay, `null` means absent, and
 * only fields that the server depends on are checked. Workers of five generations have to pass.
 */
const object = z.record(z.string(), z.unknown()).nullish()
const text = z.string().nullish()
const number = z.number().nullish()
const name = z.string().max(LIMITS.identifierCharsMax)
const names = z.array(name).max(LIMITS.workerNamesMax).nullish()
const identifier = z.string().min(1).max(LIMITS.identifierCharsMax)
const seconds = z.number().min(0).nullish()
const costs = z.record(z.string(), z.number()).nullish()

const skills = z
  .array(z.union([name, z.looseObject({ name })]))
  .max(LIMITS.workerNamesMax)
  .nullish()
const artifacts = z
  .array(z.union([name, z.looseObject({ name, version: text })]))
  .max(LIMITS.workerNamesMax)
  .nullish()
const signed = { security: object, metadata: object, timestamp: number }

const resources = z
  .looseObject({
    max_concurrent_tasks: number,
    cpu_cores: number,
    ram_gb: number,
    gpu_info: z.looseObject({ model: text, vram_gb: number }).nullish(),
    devices: z.array(z.looseObject({ type: z.string(), model: text, properties: object })).nullish(),
    properties: object,
  })
  .nullish()

export const registerRequest = z.looseObject({
  worker_id: z
    .string()
    .max(LIMITS.identifierCharsMax)
    .regex(/^[A-Za-z0-9_-]+$/),
  worker_type: text,
  supported_skills: skills,
  supported_tasks: names,
  available_skills: names,
  hot_skills: skills,
  hot_cache: names,
  resources,
  installed_software: object,
  installed_models: artifacts,
  installed_artifacts: artifacts,
  capabilities: z
    .looseObject({
      hostname: text,
      ip_address: text,
      cost_per_skill: costs,
      cost_per_second: number,
      s3_config_hash: text,
      extra: object,
    })
    .nullish(),
  skills_hash: text,
  max_concurrent_tasks: number,
  cost_per_skill: costs,
  cost_per_second: number,
  hostname: text,
  ip_address: text,
  ...signed,
})

export const heartbeatRequest = z.looseObject({
  worker_id: text,
  status: text,
  load: number,
  usage: object,
  current_tasks: z.array(z.string()).max(LIMITS.workerTasksMax).nullish(),
  supported_tasks: names,
  supported_skills: skills,
  available_skills: names,
  hot_cache: names,
  hot_skills: skills,
  skill_dependencies: object,
  skills_hash: text,
  ...signed,
})

export const taskBatchRequest = z.looseObject({
  limit: z.int().min(1).max(LIMITS.batchItemsMax),
  timeout: seconds,
  available_skills: names,
  hot_skills: names,
})

const resultBody = {
  status: text,
  data: z.unknown().optional(),
  error: z.union([z.string(), z.looseObject({ code: text, message: text })]).nullish(),
  error_message: text,
  data_metadata: object,
}

export const resultRequest = z.looseObject({
  job_id: identifier,
  task_id: identifier,
  worker_id: text,
  result: z.looseObject(resultBody).nullish(),
  origin_worker_id: text,
  costs: z.unknown().optional(),
  log: z.unknown().optional().describe('Lines for the log of the job: `{timestamp, level, message, fields?}`.'),
  ...resultBody,
  ...signed,
})

export const resultBatchRequest = z.looseObject({
  worker_id: identifier,
  results: z.array(resultRequest).max(LIMITS.batchItemsMax),
})

export const eventRequest = z.looseObject({
  event_type: identifier,
  event_id: text,
  worker_id: text,
  origin_worker_id: text,
  origin_task_id: text,
  target_job_id: text,
  target_task_id: text,
  payload: object,
  bubbling_chain: names,
  trace_context: object,
  priority: number,
  ...signed,
})
