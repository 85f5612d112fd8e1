import { blueprint } from '@impresario/core'
import { contract } from '@impresario/protocol'
import { createOrchestrator } from '@impresario/server/embedded'
import type { Orchestrator } from '@impresario/server/embedded'
import { createWorker } from '@impresario/worker'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'

const greeter = contract('greeter', {
  greet: { input: z.object({ name: z.string() }), output: z.object({ greeting: z.string() }) },
})

const hello = blueprint(
  'hello',
  { input: z.object({ name: z.string() }), output: z.string(), start: 'greet' },
  (state) => ({
    greet: state.handler((context, actions) =>
      actions.dispatchTask(greeter.greet, { params: context.initialData, transitions: { success: 'greeted' } }),
    ),
    greeted: state.end({ result: (context) => context.resultOf(greeter.greet).greeting }),
  }),
)

let redis: TestServer
beforeAll(async () => {
  redis = await startRedis()
}, 300_000)
const running: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop()
})
afterAll(() => redis.remove())

async function anInstance(instanceId: string, storageUrl = redis.url): Promise<Orchestrator> {
  const settings = { storageUrl, instanceId, logLevel: 'silent' } as const
  const orchestrator = createOrchestrator({ blueprints: [hello], settings })
  running.unshift(orchestrator)
  await orchestrator.start()
  return orchestrator
}

test.for([1, 4])(
  '[G-01, G-02] jobs run through two instances on one Redis, wherever the worker is, in %i shards',
  { timeout: 60_000 },
  async (shards) => {
    const url = `${redis.url}?namespace=of${shards}&shards=${shards}`
    const [one, two] = [await anInstance('one', url), await anInstance('two', url)]
    const worker = createWorker({ transport: one.localTransport() })
    worker.handle(greeter, { greet: ({ name }) => ({ greeting: `Hello, ${name}!` }) })
    await worker.start()
    running.unshift(worker)
    const jobs = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? one : two).client().start(hello, { name: `n${index}` }),
      ),
    )
    const greetings = await Promise.all(jobs.map((job) => job.result()))
    expect(greetings).toEqual(jobs.map((_, index) => `Hello, n${index}!`))
  },
)

test('[G-02] a server does not start on a Redis that cannot be opened', { timeout: 60_000 }, async () => {
  await expect(anInstance('one', `${redis.url}?cluster=perhaps`)).rejects.toMatchObject({
    code: 'INVALID_CONFIGURATION',
  })
})
