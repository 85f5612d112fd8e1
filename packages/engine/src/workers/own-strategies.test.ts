import type { Strategy } from '@impresario/core'
import { newWorkerRecord } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Engine } from '../engine.ts'
import { ListLog, VirtualClock, oneTask, registryOf } from '../stage.fixture.ts'

/** The worker with the most memory, whatever it costs. */
const roomiest: Strategy = {
  name: 'roomiest',
  criteria: [
    {
      name: 'memory',
      measure: ({ worker }) => -worker.ramGb,
      because: ({ worker }, next) => `has ${worker.ramGb} GB and '${next.worker.id}' has ${next.worker.ramGb}`,
    },
  ],
}

function engineWith(strategies: readonly Strategy[]): Engine {
  const clock = new VirtualClock()
  let ids = 0
  return new Engine({
    storage: testStorage({ now: clock.now }),
    clock,
    random: { next: () => 0.5, id: () => `job-${(ids += 1)}` },
    log: new ListLog(),
    blueprints: registryOf([oneTask({ strategy: 'roomiest' }, { handlerAttemptsMax: 1 })]),
    strategies,
  })
}

async function begin(engine: Engine): Promise<string> {
  const small = newWorkerRecord({ id: 'a', skills: ['work'], ramGb: 4, costPerSecond: 1 }, 0)
  await engine.desk.register({ ...small, seenAt: 1_700_000_000_000 })
  await engine.desk.register({ ...small, id: 'b', ramGb: 64, costPerSecond: 9, seenAt: 1_700_000_000_000 })
  const { jobId } = await engine.createJob({ blueprint: 'one', client: { id: 'c' }, initialData: {} })
  for (let rounds = 0; rounds < 10; rounds += 1) await engine.tick()
  return jobId
}

test('[D-03] a strategy of the program’s own chooses and explains like the built-in ones', async () => {
  const engine = engineWith([roomiest])
  const jobId = await begin(engine)
  expect([engine.dispatcher.loadOf('a'), engine.dispatcher.loadOf('b')]).toEqual([0, 1])
  const job = (await engine.readJob(jobId))!.value
  const [{ explanation } = { explanation: undefined }] = await engine.explainJob(job)
  expect(explanation).toMatchObject({ strategy: 'roomiest', criteria: ['memory', 'id'] })
})

test('[D-03] a task that asks for a strategy nobody knows is refused by name', async () => {
  const engine = engineWith([])
  const job = (await engine.readJob(await begin(engine)))!.value
  expect(job.status).toBe('quarantined')
  expect(job.error?.message).toContain("There is no dispatch strategy 'roomiest'. Known are: default")
})

test('[D-03] a name that is taken is refused when the engine is made', () => {
  expect(() => engineWith([{ ...roomiest, name: 'default' }])).toThrow(
    "The dispatch strategy 'default' is there already",
  )
})
