import { expect, test } from 'vitest'
import { compilePipeline } from './compile.ts'
import { Problems } from './problem.ts'
import { rehearse } from './rehearsal.ts'
import type { Rehearsal } from './rehearsal.ts'

const TOOLS = { named: () => ({ check: () => [] }), similar: () => [] }
const GIVEN: Rehearsal = {
  params: { city: 'Kazan', cities: ['Kazan', 'Ufa'] },
  event: { payload: { ref: 'main' } },
  steps: {},
  now: '2026-11-17T09:00:00.000Z',
  automation: { id: 'a', title: 'A' },
}

function rehearsed(pipeline: readonly object[], given: Partial<Rehearsal> = {}): ReturnType<typeof rehearse> {
  const problems = new Problems()
  const compiled = compilePipeline(pipeline, TOOLS, problems)
  expect(problems.list).toEqual([])
  return rehearse(compiled ?? { steps: [] }, { ...GIVEN, ...given })
}

test('[K-09] a rehearsal fills in templates, evaluates conditions and calls nothing', () => {
  const [ask, tell] = rehearsed([
    { id: 'ask', uses: 'http.request', if: "event.payload.ref == 'main'", with: { url: 'https://x/${params.city}' } },
    { id: 'tell', uses: 'log', with: { message: 'At ${now}, by ${secrets.KEY}', n: 1 } },
  ])
  expect(ask).toMatchObject({
    kind: 'tool',
    uses: 'http.request',
    input: { url: 'https://x/Kazan' },
    condition: { holds: true, values: { 'event.payload.ref': 'main' } },
    open: [],
  })
  expect(tell?.input).toEqual({ message: 'At 2026-11-17T09:00:00.000Z, by [secret KEY]', n: 1 })
})

test('[K-09] what depends on an output stays open, and is filled in where the output is supposed', () => {
  const pipeline = [
    { id: 'ask', uses: 'http.request', with: {} },
    {
      id: 'tell',
      uses: 'log',
      if: 'steps.ask.status == 200',
      with: { message: 'Got ${steps.ask.status}', city: '${params.city}' },
    },
  ]
  const [, open] = rehearsed(pipeline)
  expect(open?.condition?.holds).toBeUndefined()
  expect(open?.input).toEqual({ message: 'Got ${steps.ask.status}', city: 'Kazan' })
  expect(open?.open).toHaveLength(2)
  const [, known] = rehearsed(pipeline, { steps: { ask: { status: 200 } } })
  expect(known).toMatchObject({ input: { message: 'Got 200' }, condition: { holds: true }, open: [] })
})

test('[K-09] loops, branches and questions are shown with what is inside', () => {
  const [each, side, question] = rehearsed([
    { id: 'each', for_each: { items: 'params.cities', as: 'city' }, uses: 'log', with: { message: '${city}' } },
    { id: 'side', parallel: [{ id: 'a', uses: 'log', with: { message: '${params.city}' } }] },
    { id: 'question', approval: { message: 'Send to ${params.city}?' } },
  ])
  expect(each).toMatchObject({ items: 2, input: { message: 'Kazan' } })
  expect(side).toMatchObject({ kind: 'parallel', input: null, steps: [{ id: 'a', input: { message: 'Kazan' } }] })
  expect(question?.input).toEqual({ message: 'Send to Kazan?', decisions: ['approved', 'rejected'] })
  const [unknown] = rehearsed([{ id: 'each', for_each: 'event.list', uses: 'log', with: { message: '${item.name}' } }])
  expect(unknown).toMatchObject({ items: undefined, input: { message: '${item.name}' } })
})

test('[C-10] all steps of a rehearsal together are filled in up to a bound, and what is beyond it stays open', () => {
  const list = Array.from({ length: 5_000 }, (_, index) => index)
  const many = Array.from({ length: 500 }, () => '${params}')
  const step = (id: string): object => ({ id, uses: 'log', if: 'params.list != null', with: { text: many } })
  const steps = rehearsed([step('a'), step('b'), step('c')], { params: { list } })
  // All of it would be 40 MB.
  expect(JSON.stringify(steps).length).toBeLessThan(600_000)
  expect(steps[2]?.open).toEqual([expect.stringContaining('may have 262144 characters together')])
})
