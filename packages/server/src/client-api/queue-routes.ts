import type { FastifyInstance } from 'fastify'
import { parseLane, workerOfLane } from '@impresario/core'
import type { Storage } from '@impresario/core'
import { z } from 'zod'
import { route } from '../http/route.ts'

const queueBody = z.object({
  task_type: z.string().nullable().describe('What the tasks are; null where they lie ready for one worker.'),
  requirements: z.looseObject({}).nullable().describe('What a worker must have beside the skill.'),
  worker: z.string().nullable().describe('The worker that they were placed with; null while none fits.'),
  waiting: z.int().describe('Tasks that could be taken now.'),
  is_exact: z.boolean().describe('False: there may be more.'),
})

const QUEUES = route({
  access: 'admin',
  scope: 'admin',
  tag: 'workers',
  id: 'listQueues',
  summary: 'Tasks that wait, by kind of work',
  description: 'Of all clients. Counts are exact up to ten; beyond that a storage may stop counting.',
  replies: { 200: { description: 'The queues that are not empty.', body: z.array(queueBody) } },
})

/** Up to here every storage counts exactly. */
const EXACT_MAX = 10
export function registerQueueRoutes(app: FastifyInstance, { storage }: { readonly storage: Storage }): void {
  app.get('/queues', QUEUES, async () => {
    const lanes = await storage.lanes('tasks')
    return lanes.filter(({ ready }) => ready > 0).map(({ lane, ready }) => queueOf(lane, ready))
  })
}

function queueOf(lane: string, waiting: number): z.output<typeof queueBody> {
  const counted = { waiting, is_exact: waiting < EXACT_MAX }
  const worker = workerOfLane(lane)
  if (worker !== undefined) return { task_type: null, requirements: null, worker, ...counted }
  const { type = lane, requirements } = parseLane(lane) ?? {}
  return {
    task_type: type,
    requirements: requirements === undefined ? null : { ...requirements },
    worker: null,
    ...counted,
  }
}
