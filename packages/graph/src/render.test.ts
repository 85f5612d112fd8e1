import { blueprint, toDot } from '@impresario/core'
import { expect, test } from 'vitest'
import { DrawingThread, GraphTooLargeError } from './drawing-thread.ts'
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

/** Every state leads to all later ones: a layout that takes long. */
function tangle(states: number): Parameters<typeof renderGraph>[0] {
  const names = Array.from({ length: states }, (_, index) => `s${index}`)
  const nodes = names.map((name, index) => ({
    name,
    kind: 'handler' as const,
    isStart: index === 0,
    links: names.slice(index + 1).map((to) => ({ to, label: to })),
  }))
  return { name: 'tangle', nodes }
}

test('[A-06] [C-10] drawing leaves the thread of the caller to others', async () => {
  let turns = 0
  const drawing = renderGraph(tangle(12), { format: 'svg' })
  const count = setInterval(() => {
    turns += 1
  }, 1)
  await drawing
  clearInterval(count)
  // On this thread it would let two or three turns pass.
  expect(turns).toBeGreaterThan(5)
  // What was drawn once is there.
  expect(await renderGraph(tangle(12), { format: 'svg' })).toBe(await drawing)
})

test('[A-06] [C-10] a drawing that takes too long is given up, and the next one is drawn', async () => {
  const thread = new DrawingThread(1)
  await expect(thread.draw(toDot(tangle(60)))).rejects.toThrow(GraphTooLargeError)
  const patient = new DrawingThread()
  const drawn = await Promise.all([patient.draw(toDot(order)), patient.draw(toDot(tangle(3)))])
  expect(drawn.every((svg) => svg.includes('<svg'))).toBe(true)
  await expect(patient.draw('graph {')).rejects.toThrow('could not be drawn')
  expect(await patient.draw(toDot(order))).toBe(drawn[0])
})
