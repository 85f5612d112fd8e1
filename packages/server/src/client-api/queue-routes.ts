import type { FastifyInstance } from 'fastify'
import { parseLane, workerOfLane } from '@impresario/core'
import type { Storage } from '@impresario/core'
import type { Engine, TaskRate } from '@impresario/engine'
import { z } from 'zod'
import { route } from '../http/route.ts'

export const queueBody = z.object({
  task_type: z.string().nullable().describe('What the tasks are; null where they lie ready for one worker.'),
  requirements: z.looseObject({}).nullable().describe('What a worker must have beside the skill.'),
  worker: z.string().nullable().describe('The worker that they were placed with; null while none fits.'),
  waiting: z.int().describe('Tasks that could be taken now.'),
  is_exact: z.boolean().describe('False: there may be more.'),
  oldest_seconds: z
    .number()
    .nullable()
    .describe(
      'How long the task has been waiting that comes next; null where none waits, and beyond the hundred longest queues.',
    ),
  placed_per_minute: z
    .int()
    .nullable()
    .describe('Tasks of this type that were queued in the last minute, whatever they require; null for one worker.'),
  taken_per_minute: z
    .int()
    .nullable()
    .describe('Tasks of this type that workers took in the last minute, whatever they require; null for one worker.'),
})

const QUEUES = route({
  access: 'admin',
  scope: 'admin',
  tag: 'workers',
  id: 'listQueues',
  summary: 'Tasks that wait, by kind of work',
  description:
    'Of all clients. Counts are exact up to ten; beyond that a storage may stop counting. What comes and goes is counted by all instances in memory: after a start, from zero.',
  replies: {
    200: {
      description: 'The queues with something in them, or through them in the last minute.',
      body: z.array(queueBody),
    },
  },
})

/** Up to here every storage counts exactly. */
export const EXACT_MAX = 10

/** The first task of so many queues is looked at, one call of the storage for each. */
const HEADS_MAX = 100

export interface QueueParts {
  readonly storage: Storage
  readonly engine: Pick<Engine, 'company'>
}

export function registerQueueRoutes(app: FastifyInstance, parts: QueueParts): void {
  app.get('/queues', QUEUES, () => listQueues(parts))
}

type Queue = z.output<typeof queueBody>

/** The same over HTTP and in the process. */
export async function listQueues({ storage, engine }: QueueParts): Promise<readonly Queue[]> {
  const rates = new Map(engine.company.taskRates.map((rate) => [rate.type, rate]))
  const lanes = await storage.lanes('tasks')
  const filled = lanes.filter(({ ready }) => ready > 0).toSorted((a, b) => b.ready - a.ready)
  const heads = await Promise.all(filled.slice(0, HEADS_MAX).map(({ lane }) => storage.oldest('tasks', lane)))
  const queues = filled.map(({ lane, ready }, index) => {
    const waitedMs = heads[index]
    const oldest = waitedMs === undefined ? null : waitedMs / 1_000
    return { ...queueOf(lane, ready, rates), oldest_seconds: oldest }
  })
  const waiting = new Set(queues.map(({ task_type: type }) => type))
  const passing = [...rates.keys()].filter((type) => !waiting.has(type))
  return [...queues, ...passing.map((type) => byType(type, null, 0, rates))]
}

function queueOf(lane: string, waiting: number, rates: ReadonlyMap<string, TaskRate>): Queue {
  const worker = workerOfLane(lane)
  if (worker === undefined) {
    const { type = lane, requirements } = parseLane(lane) ?? {}
    return byType(type, requirements === undefined ? null : { ...requirements }, waiting, rates)
  }
  const none = { oldest_seconds: null, placed_per_minute: null, taken_per_minute: null }
  return { task_type: null, requirements: null, worker, waiting, is_exact: waiting < EXACT_MAX, ...none }
}

function byType(
  type: string,
  requirements: Queue['requirements'],
  waiting: number,
  rates: ReadonlyMap<string, TaskRate>,
): Queue {
  const { placed = 0, taken = 0 } = rates.get(type) ?? {}
  return {
    task_type: type,
    requirements,
    worker: null,
    waiting,
    is_exact: waiting < EXACT_MAX,
    oldest_seconds: null,
    placed_per_minute: placed,
    taken_per_minute: taken,
  }
}
