import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { contract } from '@impresario/protocol'
import type { Server } from '@impresario/server'
import { createWorker } from '@impresario/worker'
import { z } from 'zod'

const SLOTS = 64
const work = contract('figures', { part: { input: z.object({ part: z.number() }), output: z.object({}) } })

/** Fans out again and again. */
export const fanOut = blueprint(
  'fan_out',
  {
    start: 'spread',
    transitionsMax: 1_000,
    input: z.object({ parts: z.number().int(), rounds: z.number().int() }),
    history: z.object({ done: z.number() }),
  },
  (state) => ({
    spread: state.handler(({ initialData: { parts } }, actions) =>
      actions.dispatchParallel(
        Array.from({ length: parts }, (_, part) => work.part({ part })),
        { into: 'gather' },
      ),
    ),
    gather: state.aggregator(({ initialData, stateHistory }, actions) => {
      const done = (stateHistory.done ?? 0) + 1
      return actions.transitionTo(done < initialData.rounds ? 'spread' : 'end', { done })
    }),
    end: state.end(),
  }),
)

/** A job that has spread out into so many parts, so many times, and has ended. */
export async function spreadOut(
  server: Server,
  admin: Client,
  given: { readonly parts: number; readonly rounds: number },
): Promise<string> {
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const worker = createWorker({ id: 'parts', transport: server.localTransport(), log, concurrency: SLOTS })
  worker.handle(work, { part: () => ({}) })
  await worker.start()
  try {
    const job = await admin.start(fanOut, given)
    await job.result({ timeoutMs: 3_600_000 })
    return job.id
  } finally {
    await worker.stop()
  }
}
