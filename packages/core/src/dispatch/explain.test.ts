import { expect, test } from 'vitest'
import type { TaskCall } from '../job/job.ts'
import { newWorkerRecord } from '../worker/registration.ts'
import type { WorkerPatch } from '../worker/registration.ts'
import { explain } from './explain.ts'

function aWorker(id: string, said: WorkerPatch = {}) {
  return newWorkerRecord({ id, skills: ['render'], ...said }, 0)
}

function aCall(over: Partial<TaskCall> = {}): TaskCall {
  return { kind: 'task', type: 'render', params: {}, priority: 0, strategy: 'default', ...over }
}

const free = (...workers: readonly ReturnType<typeof aWorker>[]) => workers.map((worker) => ({ worker, load: 0 }))
const summary = (...[call, workers, options]: Parameters<typeof explain>) => explain(call, workers, options).summary

test('[D-05] every worker is filtered out with reasons or scored with its place', () => {
  const explanation = explain(
    aCall({ requirements: { gpu: { vramGb: 8 } } }),
    [
      ...free(
        aWorker('other', { skills: [] }),
        aWorker('none'),
        aWorker('small', { gpus: [{ model: 'T4', vramGb: 4 }] }),
      ),
      { worker: aWorker('taken', { gpus: [{ model: 'T4', vramGb: 8 }] }), load: 1 },
      ...free(aWorker('failed', { gpus: [{ model: 'T4', vramGb: 8 }] })),
      { worker: aWorker('b', { gpus: [{ model: 'T4', vramGb: 8 }], concurrencyMax: 2 }), load: 1 },
      ...free(aWorker('a', { gpus: [{ model: 'T4', vramGb: 16 }], costPerSecond: 2, hotSkills: ['render'] })),
    ],
    { exclude: ['failed'] },
  )
  expect(explanation).toEqual({
    type: 'render',
    strategy: 'default',
    criteria: ['warm', 'cost', 'reputation', 'load', 'seniority', 'id'],
    chosen: 'a',
    summary: "'a' is chosen of 2 candidates by 'default': it is warm and 'b' is not.",
    reason: {
      code: 'best',
      values: { worker: 'a', candidates: 2, strategy: 'default', next: 'b', criterion: 'warm' },
    },
    live: 7,
    skilled: 6,
    candidates: 2,
    workers: [
      { workerId: 'a', verdict: 'candidate', place: 1, score: { warm: true, cost: 2, reputation: 1, load: 0 } },
      { workerId: 'b', verdict: 'candidate', place: 2, score: { warm: false, cost: null, reputation: 1, load: 1 } },
      {
        workerId: 'none',
        verdict: 'filtered',
        mismatches: [{ reason: 'gpu', needed: 'GPU', has: null }],
        reasons: ['It has no GPU.'],
      },
      {
        workerId: 'small',
        verdict: 'filtered',
        mismatches: [{ reason: 'gpu_vram', needed: 8, has: 4 }],
        reasons: ['It has 4 GB of VRAM; the task needs 8 GB.'],
      },
      {
        workerId: 'taken',
        verdict: 'filtered',
        mismatches: [{ reason: 'slots', needed: 1, has: 1 }],
        reasons: ['It is full: it has 1 tasks and 1 slots.'],
      },
      {
        workerId: 'failed',
        verdict: 'filtered',
        mismatches: [{ reason: 'excluded', needed: 'another worker', has: 'failed' }],
        reasons: ['It has just failed this task, and another worker could take it.'],
      },
      {
        workerId: 'other',
        verdict: 'filtered',
        mismatches: [
          { reason: 'skill', needed: 'render', has: [] },
          { reason: 'gpu', needed: 'GPU', has: null },
        ],
        reasons: ["It lacks the skill 'render'.", 'It has no GPU.'],
      },
    ],
    omitted: 0,
  })
  expect(JSON.parse(JSON.stringify(explanation))).toEqual(explanation)
})

test('[D-05] why a task waits is said in one sentence', () => {
  const gpu = { requirements: { gpu: { vramGb: 8 } } }
  const withVram = (id: string, vramGb: number) => aWorker(id, { gpus: [{ model: 'T4', vramGb }] })
  expect(summary(aCall(), [])).toBe('No worker is live.')
  expect(summary(aCall({ type: 'x' }), free(aWorker('w')))).toBe("No live worker has the skill 'x'.")
  expect(
    summary(aCall(gpu), [{ worker: withVram('c', 8), load: 1 }, ...free(withVram('a', 4), withVram('b', 2))]),
  ).toBe("3 workers have the skill 'render'; 2 lack 8 GB of VRAM, 1 is full.")
  const failedOnce = summary(aCall(), free(aWorker('w')), { exclude: ['w'] })
  expect(failedOnce).toBe("1 worker has the skill 'render'; 1 has just failed it.")
  const failedTwice = summary(aCall(), free(aWorker('v'), aWorker('w')), { exclude: ['v', 'w'] })
  expect(failedTwice).toBe("2 workers have the skill 'render'; 2 have just failed it.")
})

test('[D-05] a summary names a bounded number of obstacles', () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  const workers = free(...ids.map((id) => aWorker(id, { models: ids.filter((model) => model !== id) })))
  const said = summary(aCall({ requirements: { models: ids } }), workers)
  expect(said).toContain("6 workers have the skill 'render'; 1 lacks the model 'a', ")
  expect(said.endsWith('and others lack something else.')).toBe(true)
})

test('[D-05] [M-07] a summary is there as data too', () => {
  const reason = (...[call, workers, options]: Parameters<typeof explain>) => explain(call, workers, options).reason
  expect(reason(aCall(), [])).toEqual({ code: 'no_workers', values: {} })
  expect(reason(aCall({ type: 'x' }), free(aWorker('w')))).toEqual({ code: 'no_skill', values: { skill: 'x' } })
  expect(reason(aCall({ requirements: { ramGb: 64 } }), free(aWorker('v'), aWorker('w')))).toEqual({
    code: 'none_fits',
    values: {
      skill: 'render',
      skilled: 2,
      obstacles: [{ reason: 'ram_gb', needed: 64, count: 2 }],
      isMore: false,
    },
  })
  expect(reason(aCall(), free(aWorker('a')))).toEqual({
    code: 'only_one',
    values: { worker: 'a', skill: 'render', skilled: 1 },
  })
  expect(reason(aCall(), free(aWorker('a'), aWorker('b')))).toMatchObject({ values: { next: 'b', criterion: 'id' } })
})

test('[D-05] why a worker was chosen names what set it apart from the next', () => {
  const why = (strategy: string, first: WorkerPatch, second: WorkerPatch, loads: readonly [number, number] = [0, 0]) =>
    summary(aCall({ strategy }), [
      { worker: aWorker('a', { concurrencyMax: 9, ...first }), load: loads[0] },
      { worker: aWorker('b', { concurrencyMax: 9, ...second }), load: loads[1] },
    ])
  expect(summary(aCall(), free(aWorker('a'), aWorker('x', { status: 'draining' })))).toBe(
    "'a' is chosen: of 2 with the skill 'render' it alone can take the task now.",
  )
  expect(why('default', {}, {})).toContain("it is equal to 'b' in everything, and its id comes first.")
  expect(why('cheapest', { costPerSecond: 1 }, { costPerSecond: 2 })).toContain(
    "it costs 1 per second and 'b' costs 2.",
  )
  expect(why('cheapest', { costPerSecond: 1 }, {})).toContain("it costs 1 per second and 'b' names no price.")
  expect(why('default', {}, { reputation: 0.5 })).toContain("it has the reputation 1 and 'b' has 0.5.")
  expect(why('least_connections', {}, {}, [1, 2])).toContain("it has 1 tasks and 'b' has 2.")
  expect(why('best_value', { costPerSecond: 1 }, { costPerSecond: 2 })).toContain(
    'it asks less for its reputation than',
  )
  const rotated = summary(aCall({ strategy: 'round_robin' }), free(aWorker('a'), aWorker('b')), { last: 'a' })
  expect(rotated).toContain("'b' is chosen of 2 candidates by 'round_robin': it comes after 'a', who had the last task")
})

test('[D-05] an explanation stays readable with very many workers', () => {
  const many = Array.from({ length: 250 }, (_, index) => aWorker(`w${index}`, { skills: index % 2 ? ['render'] : [] }))
  const explanation = explain(aCall(), free(...many), { workersMax: 130 })
  expect(explanation).toMatchObject({ live: 250, skilled: 125, candidates: 125, omitted: 120 })
  expect(explanation.workers).toHaveLength(130)
  expect(explain(aCall(), free(...many)).workers).toHaveLength(100)
})
