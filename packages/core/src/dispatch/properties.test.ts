import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ResourceRequirements } from '@impresario/protocol'
import type { TaskCall } from '../job/job.ts'
import { newWorkerRecord } from '../worker/registration.ts'
import type { WorkerRecord } from '../worker/worker.ts'
import { hasFreeSlot } from './demand.ts'
import type { Candidate } from './demand.ts'
import { explain } from './explain.ts'
import { laneMatchesWorker, parseLane, requirementLane } from './lane.ts'
import { match, matches } from './match.ts'
import { choose, compareRanked, rank } from './rank.ts'
import { questionOf, strategyNamed } from './strategies.ts'
import { WorkerIndex } from './worker-index.ts'

/** Few values each, so that what is drawn for tasks and for workers often meets. */
const type = fc.constantFrom('render', 'train', 'constructor')
const types = fc.uniqueArray(type)
const name = fc.constantFrom('a', 'b', 'c')
const names = fc.uniqueArray(name)
const amount = fc.integer({ min: 0, max: 3 })
const gpuModel = fc.constantFrom('NVIDIA A100', 'Tesla T4', 'nvidia a10')
const property = fc.oneof(amount, name, fc.boolean(), names)

const workerArbitrary = (id: fc.Arbitrary<string>): fc.Arbitrary<WorkerRecord> =>
  fc
    .record({
      id,
      status: fc.constantFrom('idle', 'idle', 'busy', 'full', 'draining', 'offline'),
      skills: fc.array(type),
      availableSkills: fc.option(types),
      hotSkills: types,
      hotModels: names,
      concurrencyMax: fc.integer({ min: 1, max: 3 }),
      cpuCores: amount,
      ramGb: amount,
      gpus: fc.array(fc.record({ model: gpuModel, vramGb: amount }), { maxLength: 2 }),
      models: names,
      software: fc.dictionary(name, fc.constantFrom('1', '2')),
      properties: fc.dictionary(name, property),
      costPerSecond: fc.option(amount),
      costPerSkill: fc.dictionary(type, amount),
      reputation: fc.constantFrom(0, 0.5, 1),
    })
    .map((said) => newWorkerRecord(said, 0))

const needsArbitrary: fc.Arbitrary<ResourceRequirements> = fc.record(
  {
    gpu: fc.record({ model: fc.constantFrom('a10', 'A100', 'T4', 't'), vramGb: amount }, { requiredKeys: [] }),
    cpuCores: amount,
    ramGb: amount,
    models: names,
    software: fc.dictionary(name, fc.constantFrom('1', '2', 'any'), { maxKeys: 1 }),
    properties: fc.dictionary(name, property, { maxKeys: 1 }),
  },
  { requiredKeys: [] },
)

const callArbitrary: fc.Arbitrary<TaskCall> = fc
  .record(
    {
      type,
      params: fc.oneof(fc.record({ model_name: name }), fc.record({ model: name }), fc.constant({})),
      strategy: fc.constantFrom('default', 'round_robin', 'least_connections', 'cheapest', 'best_value'),
      requirements: needsArbitrary,
      maxCost: amount,
    },
    { requiredKeys: ['type', 'params', 'strategy'] },
  )
  .map((drawn): TaskCall => ({ kind: 'task', priority: 0, ...drawn }))

const idArbitrary = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
const candidatesArbitrary: fc.Arbitrary<readonly Candidate[]> = fc.uniqueArray(
  fc.record({ worker: workerArbitrary(idArbitrary), load: amount }),
  { selector: ({ worker }) => worker.id },
)

test('[D-02] the fast answer and the one with reasons always agree', () => {
  fc.assert(
    fc.property(callArbitrary, workerArbitrary(idArbitrary), (call, drawn) => {
      expect(matches(call, drawn)).toBe(match(call, drawn).length === 0)
    }),
    { numRuns: 1_000 },
  )
})

test('[D-02] [D-04] the lane alone decides like the task itself', () => {
  fc.assert(
    fc.property(callArbitrary, workerArbitrary(idArbitrary), (call, worker) => {
      const lane = requirementLane(call)
      const asking = { ...worker, status: 'idle' as const }
      expect(laneMatchesWorker(lane, asking)).toBe(matches(call, asking))
      const waiting = parseLane(lane)
      expect(waiting && requirementLane(waiting)).toBe(lane)
    }),
    { numRuns: 500 },
  )
})

test('[D-03] [J-14] every strategy is a total order, and the choice is its first', () => {
  fc.assert(
    fc.property(callArbitrary, candidatesArbitrary, fc.option(idArbitrary, { nil: undefined }), (call, drawn, last) => {
      const strategy = strategyNamed(call.strategy)
      const question = questionOf(call, last)
      const ranked = rank(strategy, drawn, question)
      for (const [i, a] of ranked.entries()) {
        for (const [j, b] of ranked.entries()) {
          expect(compareRanked(a, b)).toBe(Math.sign(i - j))
        }
      }
      expect(rank(strategy, drawn.toReversed(), question)).toEqual(ranked)
      expect(choose(strategy, drawn, question)).toBe(ranked[0]?.candidate)
      expect(choose(strategy, drawn.toReversed(), question)).toBe(ranked[0]?.candidate)
    }),
    { numRuns: 300 },
  )
})

type Step =
  | { readonly do: 'put'; readonly worker: WorkerRecord }
  | { readonly do: 'remove'; readonly id: string }
  | { readonly do: 'addLoad'; readonly id: string; readonly by: number }
  | { readonly do: 'setLoad'; readonly id: string; readonly by: number }
  | { readonly do: 'choose'; readonly call: TaskCall; readonly exclude: readonly string[] }

const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('put' as const), worker: workerArbitrary(idArbitrary) }),
  fc.record({ do: fc.constant('remove' as const), id: idArbitrary }),
  fc.record({ do: fc.constant('addLoad' as const), id: idArbitrary, by: fc.integer({ min: -2, max: 3 }) }),
  fc.record({ do: fc.constant('setLoad' as const), id: idArbitrary, by: amount }),
  fc.record({
    do: fc.constant('choose' as const),
    call: callArbitrary,
    exclude: fc.uniqueArray(idArbitrary, { maxLength: 2 }),
  }),
)

/** The index as one would write it first: a map and a filter over all of it. */
class NaiveIndex {
  readonly workers = new Map<string, Candidate>()

  put(worker: WorkerRecord): void {
    this.workers.set(worker.id, { worker, load: this.workers.get(worker.id)?.load ?? 0 })
  }

  setLoad(id: string, load: number): void {
    const known = this.workers.get(id)
    if (known !== undefined) this.workers.set(id, { worker: known.worker, load: Math.max(0, load) })
  }

  candidates(call: TaskCall, exclude: readonly string[]): Candidate[] {
    return [...this.workers.values()].filter(
      (one) => hasFreeSlot(one) && matches(call, one.worker) && !exclude.includes(one.worker.id),
    )
  }
}

/** Does the same to both, and gives what each of them answered. */
function step(index: WorkerIndex, naive: NaiveIndex, one: Step): readonly [unknown, unknown] {
  if (one.do === 'put') return [index.put(one.worker), naive.put(one.worker)]
  if (one.do === 'remove') return [index.remove(one.id), naive.workers.delete(one.id)]
  if (one.do === 'addLoad') {
    naive.setLoad(one.id, index.load(one.id) + one.by)
    return [index.addLoad(one.id, one.by), undefined]
  }
  if (one.do === 'setLoad') return [index.setLoad(one.id, one.by), naive.setLoad(one.id, one.by)]
  const last = index.last(one.call.type)
  const expected = choose(
    strategyNamed(one.call.strategy),
    naive.candidates(one.call, one.exclude),
    questionOf(one.call, last),
  )?.worker.id
  const explained = explain(one.call, index.all(), { exclude: one.exclude, last }).chosen
  const chosen = index.choose(one.call, one.exclude)?.worker.id
  return [
    [chosen, explained],
    [expected, expected ?? null],
  ]
}

test('[D-01] under any operations the index finds what a filter over all workers finds', () => {
  fc.assert(
    fc.property(fc.array(stepArbitrary, { maxLength: 60 }), (steps) => {
      const index = new WorkerIndex()
      const naive = new NaiveIndex()
      for (const one of steps) {
        const [found, expected] = step(index, naive, one)
        expect(found).toEqual(expected)
      }
      const byId = (a: Candidate, b: Candidate) => (a.worker.id < b.worker.id ? -1 : 1)
      const plain = ({ worker, load }: Candidate) => ({ worker, load })
      for (const skill of ['render', 'train', 'constructor', 'unknown']) {
        const call: TaskCall = { kind: 'task', type: skill, params: {}, priority: 0, strategy: 'default' }
        const available = index.available(skill).toSorted(byId).map(plain)
        expect(available).toEqual(naive.candidates(call, []).toSorted(byId))
      }
      expect([...index.all()].map(plain).toSorted(byId)).toEqual([...naive.workers.values()].toSorted(byId))
      expect(index.size).toBe(naive.workers.size)
    }),
    { numRuns: 300 },
  )
})
