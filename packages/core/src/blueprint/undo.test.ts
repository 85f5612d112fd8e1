import { contract } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Job } from '../job/job.ts'
import { blueprint } from './define.ts'
import { toDot } from './graph.ts'
import type { UndoActions } from './undo.ts'

const bank = contract('bank', { refund: { input: z.object({ sum: z.number() }), output: z.object({}) } })
const other = blueprint('other', { input: z.object({ n: z.number() }), start: 'done' }, (state) => ({
  done: state.end(),
}))

type Undo = (context: unknown, actions: UndoActions) => unknown
const shop = (undo: Undo) =>
  blueprint('shop', { start: 'charge' }, (state) => ({
    charge: state.withUndo(
      state.handler((_context, actions) => actions.transitionTo('done')),
      undo as never,
    ),
    join: state.withUndo(
      state.aggregator((_context, actions) => actions.transitionTo('done')),
      () => undefined,
    ),
    done: state.end(),
  }))

const job: Job = {
  id: 'j',
  blueprint: 'shop',
  blueprintVersion: 1,
  client: { id: 'c' },
  status: 'running',
  state: 'charge',
  visit: 5,
  failures: 0,
  initialData: {},
  stateHistory: { sum: 7 },
  branches: {},
  priority: 0,
  depth: 0,
  trail: [],
  compensation: {
    outcome: 'failed',
    state: 'failed',
    error: { code: 'CANCELLED', message: 'no', state: 'x', stack: 'secret' },
    left: [{ state: 'charge', visit: 1, isCertain: false }],
    undone: [],
  },
  createdAt: 0,
  updatedAt: 0,
}
const { signal } = new AbortController()
const run = async (undo: Undo, change: Partial<Job> = {}) => shop(undo).perform({ job: { ...job, ...change }, signal })

test('[B-13] an undo is told what it undoes and why, and its code alone may be enough', async () => {
  let seen: unknown
  const output = await run((context) => {
    const { undo, stateHistory } = context as { undo: unknown; stateHistory: Record<string, unknown> }
    seen = undo
    stateHistory['sum'] = 0
  })
  expect(output).toEqual({ action: { type: 'undone' }, stateHistory: { sum: 0 } })
  const error = { code: 'CANCELLED', message: 'no' }
  expect(seen).toEqual({ state: 'charge', isCertain: false, outcome: 'failed', error })
  await run((context) => (seen = (context as { undo: unknown }).undo), {
    compensation: { outcome: 'cancelled', state: 'x', left: [], undone: [] },
  })
  expect(seen).toEqual({ state: 'charge', isCertain: false, outcome: 'cancelled', error: undefined })
})

test('[B-13] an undo may send a task or run a blueprint, by contract or by name', async () => {
  const params = { sum: 7 }
  expect(await run((_context, actions) => actions.dispatchTask(bank.refund, { params, attemptsMax: 9 }))).toMatchObject(
    {
      action: { type: 'task', call: { type: 'bank.refund', params, attemptsMax: 9 }, transitions: {} },
    },
  )
  expect(await run((_context, actions) => actions.dispatchTask({ type: 'refund' }))).toMatchObject({
    action: { type: 'task', call: { type: 'refund' } },
  })
  expect(await run((_context, actions) => actions.runBlueprint(other, { initialData: { n: 1 } }))).toMatchObject({
    action: { type: 'child', call: { blueprint: 'other', initialData: { n: 1 } }, transitions: {} },
  })
  expect(await run((_context, actions) => actions.runBlueprint({ name: 'other' }))).toMatchObject({
    action: { type: 'child', call: { blueprint: 'other' } },
  })
})

test('[B-13] an undo that asks for two things, or forgets to return, is told so', async () => {
  await expect(
    run((_context, actions) => {
      actions.dispatchTask({ type: 'a' })
      return actions.dispatchTask({ type: 'b' })
    }),
  ).rejects.toThrow('asks for two things')
  await expect(
    run((_context, actions) => {
      actions.dispatchTask({ type: 'a' })
    }),
  ).rejects.toThrow('did not return it')
  let late: UndoActions | undefined
  await run((_context, actions) => {
    late = actions
  })
  expect(() => late?.dispatchTask({ type: 'a' })).toThrow('after it has returned')
  await expect(run(() => undefined, { state: 'done' })).rejects.toThrow('it has no undo in this version')
})

test('[B-13] the script and the graph know which states can be undone', () => {
  const script = shop(() => undefined)
  expect(script.state('charge')).toEqual({ kind: 'handler', hasUndo: true })
  expect(script.state('join')).toEqual({ kind: 'aggregator', hasUndo: true })
  expect(script.nodes.map(({ name, hasUndo }) => [name, hasUndo])).toEqual([
    ['charge', true],
    ['join', true],
    ['done', undefined],
  ])
  expect(toDot(script)).toContain(String.raw`"charge" [label="charge\ncan be undone", style="rounded"]`)
})
