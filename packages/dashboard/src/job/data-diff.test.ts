import type { HistoryBody } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { dataSteps, diffOf } from './data-diff.ts'

test('[M-02] what a step added, changed and removed is named by its path', () => {
  const before = { same: [1, 2], gone: 1, deep: { a: 1, b: { c: 'x' } }, list: [1] }
  const after = { same: [1, 2], deep: { a: 1, b: { c: 'y' } }, list: [1, 2], fresh: null }
  expect(diffOf(before, after)).toEqual([
    { path: ['gone'], kind: 'removed', before: 1 },
    { path: ['deep', 'b', 'c'], kind: 'changed', before: 'x', after: 'y' },
    { path: ['list'], kind: 'changed', before: [1], after: [1, 2] },
    { path: ['fresh'], kind: 'added', after: null },
  ])
})

test('[M-02] hostile data neither breaks the comparison nor makes it endless', () => {
  const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`key${index}`, index]))
  expect(diffOf({}, wide)).toHaveLength(200)
  const odd = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2, "toString": 3}') as unknown
  expect(diffOf({}, odd).map(({ path }) => path[0])).toEqual(['__proto__', 'constructor', 'toString'])
  let deep: unknown = 1
  for (let depth = 0; depth < 5_000; depth += 1) deep = { deep }
  expect(diffOf({}, { deep })).toHaveLength(1)
  expect(diffOf({ a: 1 }, 'no object')).toMatchObject([{ path: [], kind: 'changed' }])
})

test('[M-02] the steps of a job are those that changed its data', () => {
  const event = (id: string, state: string, snapshot: unknown): HistoryBody =>
    ({ event_id: id, event_type: 'state_started', state, timestamp: 1, context_snapshot: snapshot }) as HistoryBody
  const steps = dataSteps([
    event('1', 'a', { state_history: {} }),
    event('2', 'b', { state_history: { x: 1 } }),
    event('3', 'b', null),
    event('4', 'c', { state_history: { x: 1 }, truncated: ['state_history.y'] }),
    event('5', 'd', { state_history: { x: 2 }, truncated: ['state_history.y'] }),
  ])
  expect(steps.map(({ id, state, isCut }) => [id, state, isCut])).toEqual([
    ['2', 'b', false],
    ['5', 'd', true],
  ])
})
