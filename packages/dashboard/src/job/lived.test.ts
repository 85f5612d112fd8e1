import type { wire } from '@impresario/client'
import { expect, test } from 'vitest'
import { livedBlueprint } from './lived.ts'
import type { Span } from './path.ts'

const state = { name: 'spread', kind: 'handler', is_start: true, links: [], children: [] }

test('[M-02] a state shows what the job has handed out, and not the same again under the name of a variable', () => {
  const blueprint = {
    name: 'film',
    version: 1,
    states: [{ ...state, tasks: ['work.part', 'work.other'] }],
  } as unknown as wire.BlueprintView
  const part: Span = {
    id: '1',
    kind: 'task',
    name: 'figures.part',
    state: 'spread',
    from: 0,
    until: 1,
    isBad: false,
    worker: undefined,
    note: undefined,
  }
  const [lived] = livedBlueprint(blueprint, [part, { ...part, id: '2' }]).states
  expect(lived?.tasks).toEqual(['2 × figures.part', 'work.other'])
})
