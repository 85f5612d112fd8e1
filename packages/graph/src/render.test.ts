import { blueprint, toDot } from '@impresario/core'
import { expect, test } from 'vitest'
import { renderGraph } from './render.ts'

const order = blueprint('order', { start: 'check' }, (state) => ({
  check: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 't', transitions: { success: 'split', failure: 'failed' } }),
  ),
  split: state.handler((_context, actions) => actions.dispatchParallel([{ type: 't' }], { into: 'join' })),
  join: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

test('[A-06] DOT is what core writes', async () => {
  expect(await renderGraph(order, { format: 'dot' })).toBe(toDot(order))
})

test('[A-06] SVG has every state and label, no background, and takes the colour of its page', async () => {
  const svg = await renderGraph(order, { format: 'svg' })
  expect(svg).toMatch(/^<svg class="impresario-graph" role="img" aria-label="Graph of order"/)
  for (const text of ['check', 'split', 'join', 'done', 'failed']) expect(svg).toMatch(new RegExp(`>\\s*${text}\\s*<`))
  expect(svg).toContain('success')
  expect(svg).toContain('currentColor')
  expect(svg).not.toContain('#6e7781')
  expect(svg).not.toMatch(/fill="white"/)
  expect(svg).toContain('prefers-color-scheme:dark')
})

test('[A-06] the present state is highlighted', async () => {
  expect(await renderGraph(order, { format: 'svg', current: 'split' })).toContain('#3b82f6')
})

test('[A-06] a name cannot break out of the document', async () => {
  const svg = await renderGraph({ name: '"><script>&', nodes: order.nodes }, { format: 'svg' })
  expect(svg).not.toContain('<script>')
  expect(svg).toContain('aria-label="Graph of &quot;&gt;&lt;script&gt;&amp;"')
})
