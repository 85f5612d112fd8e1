/* oxlint-disable typescript/no-unsafe-argument -- a state history without a schema is `any` by design */
import { expect, test } from 'vitest'
import { blueprint } from './define.ts'
import { toDot } from './graph.ts'

const pick = (history: { readonly next: 'done' }) => history.next

const order = blueprint('order', { start: 'check' }, (state) => ({
  check: state
    .when("context.initial_data.kind == 'big'", (_context, actions) => actions.transitionTo('split'))
    .otherwise((_context, actions) =>
      actions.dispatchTask({ type: 't', transitions: { success: 'done', late: 'done', failure: 'failed' } }),
    ),
  split: state.handler((_context, actions) => actions.dispatchParallel([{ type: 't' }], { into: 'join' })),
  join: state.aggregator((context, actions) => actions.transitionTo(context.jobId), { to: ['done', 'dropped'] }),
  free: state.handler((context, actions) => actions.transitionTo(pick(context.stateHistory))),
  done: state.end(),
  dropped: state.end({ outcome: 'cancelled' }),
}))

test('[A-06] the graph shows start, ends, ways and their labels', () => {
  const dot = toDot(order)
  expect(dot).toMatch(/^digraph "order" \{\n/)
  expect(dot).toContain('"" -> "check"')
  expect(dot).toMatch(/"done" \[peripheries=2, color="#2da44e"/)
  expect(dot).toMatch(/"dropped" \[peripheries=2, color="#8b949e"/)
  expect(dot).toMatch(/"failed" \[peripheries=2, color="#e5534b"/)
  expect(dot).toContain(`"check" -> "split" [label=" context.initial_data.kind == 'big' "]`)
  expect(dot).toContain(String.raw`"check" -> "done" [label=" otherwise: success \n otherwise: late "]`)
  expect(dot).toContain('"split" -> "join" [style=bold, arrowhead="normalnormal"]')
  expect(dot).toContain('"join" -> "dropped"\n')
  expect(dot).toMatch(/"join" \[penwidth=2\.4, style="rounded"\]/)
  expect(dot).toMatch(/"free" \[style="rounded,dashed"\]/)
  expect(dot).toMatch(/\}\n$/)
})

test('[B-11] a state that sleeps says so', () => {
  const slow = blueprint('slow', { start: 'rest' }, (state) => ({
    rest: state.handler((_context, actions) => actions.sleep('3d', { to: 'done' })),
    done: state.end(),
  }))
  const dot = toDot(slow)
  expect(dot).toContain(String.raw`"rest" [label="rest\nwaits: after 3d", style="rounded"]`)
  expect(dot).toContain('"rest" -> "done" [label=" after 3d "]')
})

test('[A-06] the present state of a job is highlighted', () => {
  expect(toDot(order, { current: 'split' })).toMatch(/"split" \[fillcolor="#3b82f633".*style="rounded,filled"\]/)
  expect(toDot(order, { current: 'failed' })).toMatch(/"failed" \[.*style="rounded,filled"\]/)
})

test('[A-06] the implicit state is drawn only when something leads there', () => {
  const simple = blueprint('simple', { start: 'done' }, (state) => ({ done: state.end() }))
  expect(toDot(simple)).not.toContain('failed')
})

test('[A-06] names with odd characters are quoted', () => {
  const dot = toDot({
    name: 'a "b" \\ c\nd',
    nodes: [
      { name: 'x', kind: 'end', isStart: false, outcome: 'lost', links: [] },
      { name: 'y', kind: 'end', isStart: true, links: [] },
    ],
  })
  expect(dot).toContain(String.raw`digraph "a \"b\" \\ c\nd" {`)
  expect(dot).toMatch(/"x" \[peripheries=2, color="#6e7781"/)
  expect(dot).toMatch(/"y" \[peripheries=2, color="#2da44e"/)
})

test('[A-06] [B-04] [E-01] the ways of events and of expiry are drawn like others', () => {
  const watch = blueprint('watch', { start: 'look' }, (state) => ({
    look: state.handler((_context, actions) =>
      actions.dispatchTask({ type: 't', transitions: { success: 'done' }, eventTransitions: { found: 'ask' } }),
    ),
    ask: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: 'm', transitions: { yes: 'done', expired: 'failed' }, expires: '1d' }),
    ),
    done: state.end(),
  }))
  expect(toDot(watch)).toContain('"look" -> "ask" [label=" event found "]')
  expect(toDot(watch)).toContain('"ask" -> "failed" [label=" expired "]')
})

test('[A-06] [M-02] tasks, children and questions are drawn in the states that hand them out', () => {
  const shipping = blueprint('shipping', { start: 'done' }, (state) => ({ done: state.end() }))
  const shop = blueprint('shop', { start: 'pack' }, (state) => ({
    pack: state
      .when('context.initial_data.big', (_context, actions) =>
        actions.dispatchTask({ type: 'pack.big', transitions: { success: 'ask' } }),
      )
      .otherwise((_context, actions) =>
        actions.dispatchTask({ type: 'pack', transitions: { success: 'ask', failure: 'failed' } }),
      ),
    ask: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: 'Ship?', transitions: { approved: 'ship' } }),
    ),
    ship: state.handler((_context, actions) =>
      actions.runBlueprint(shipping, { initialData: {}, transitions: { success: 'done' } }),
    ),
    done: state.end(),
  }))
  const dot = toDot(shop)
  expect(dot).toContain(String.raw`"pack" [label="pack\ntask: pack.big\ntask: pack"`)
  expect(dot).toContain(String.raw`"ask" [label="ask\nasks a person"`)
  expect(dot).toContain(String.raw`"ship" [label="ship\nchild: shipping"`)
})
