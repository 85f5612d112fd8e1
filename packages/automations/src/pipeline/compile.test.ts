import { describe, expect, test } from 'vitest'
import { compilePipeline } from './compile.ts'
import type { ToolCheck } from './compile.ts'
import { Problems } from './problem.ts'

const TOOLS: ToolCheck = {
  named: (name) =>
    ['weather.forecast', 'telegram.send_message', 'log'].includes(name)
      ? { check: (input) => ('city' in input || name !== 'weather.forecast' ? [] : ['"city" is missing.']) }
      : undefined,
  similar: (name) => (name.startsWith('weather') ? ['weather.forecast'] : []),
}

function compiled(value: unknown): { readonly steps: unknown; readonly problems: readonly string[] } {
  const problems = new Problems()
  const pipeline = compilePipeline(value, TOOLS, problems)
  return {
    steps: pipeline?.steps,
    problems: problems.list.map(({ field, step, message }) => `${field} ${step}: ${message}`),
  }
}

describe('[K-09] a pipeline is compiled when it is created', () => {
  test('each field of a step is read', () => {
    const { steps, problems } = compiled([
      {
        id: 'w',
        uses: 'weather.forecast',
        with: { city: '${params.city}' },
        save_as: 'weather',
        timeout_seconds: 5,
        retry: 3,
      },
      { uses: 'log', with: { text: 'It is ${steps.weather.temperature} at ${now}' }, if: 'steps.w.temperature > 25' },
      {
        id: 'ask',
        approval: { message: 'Send to ${length(params.people)} people?', expires_seconds: 3_600 },
        on_error: 'goto done',
      },
      {
        id: 'send',
        for_each: { items: 'params.people', as: 'person', concurrency: 5 },
        uses: 'telegram.send_message',
        with: { to: '${person.id}' },
        on_error: 'continue',
      },
      { id: 'both', parallel: [{ uses: 'log' }, { id: 'b', uses: 'log', with: { x: '${steps.send}' } }] },
      {
        id: 'done',
        pipeline: [
          { id: 'inner', uses: 'log' },
          { uses: 'log', with: { x: '${steps.inner}' } },
        ],
      },
    ])
    expect(problems).toEqual([])
    expect(steps).toMatchObject([
      { id: 'w', saveAs: 'weather', timeoutSeconds: 5, retry: { maxAttempts: 3, backoff: 'exponential_jitter' } },
      { id: 'step_1', if: 'steps.w.temperature > 25' },
      {
        id: 'ask',
        body: { kind: 'approval', approval: { decisions: ['approved', 'rejected'] } },
        onError: { goto: 'done' },
      },
      { id: 'send', forEach: { items: 'params.people', as: 'person', concurrency: 5 }, onError: 'continue' },
      { id: 'both', body: { kind: 'parallel', branches: [{ id: 'branch_0' }, { id: 'b' }] } },
      { id: 'done', body: { kind: 'pipeline', steps: [{ id: 'inner' }, { id: 'step_1' }] } },
    ])
  })

  test('an empty pipeline is one', () => {
    expect(compiled([])).toEqual({ steps: [], problems: [] })
  })

  test.each<[string, unknown, string | RegExp]>([
    ['no list', {}, /^pipeline undefined: Must be a list of steps/],
    ['a step without a tool', [{ id: 'a' }], /^pipeline\[0\].uses a: A step needs exactly one of "uses"/],
    ['two kinds at once', [{ uses: 'log', parallel: [] }], /exactly one of/],
    [
      'an unknown tool',
      [{ uses: 'weather.forcast' }],
      /There is no tool "weather.forcast". Did you mean weather.forecast\?/,
    ],
    [
      'an unknown field',
      [{ uses: 'log', saveas: 'x' }],
      /pipeline\[0\].saveas step_0: There is no such field. Known: id,/,
    ],
    ['a bad template', [{ uses: 'log', with: { a: ['${params.x +}'] } }], /pipeline\[0\].with step_0: Expression/],
    [
      'a bad condition',
      [{ uses: 'log', if: 'temperature > 25' }],
      /pipeline\[0\].if step_0: .*"temperature" is not known/,
    ],
    [
      'a later output',
      [
        { uses: 'log', if: 'steps.b' },
        { id: 'b', uses: 'log' },
      ],
      /"steps.b" is not the output of an earlier/,
    ],
    ['a loop item outside', [{ uses: 'log', with: { x: '${item}' } }], /"item" is not known here/],
    [
      'a sibling branch',
      [
        {
          parallel: [
            { id: 'a', uses: 'log' },
            { uses: 'log', if: 'steps.a' },
          ],
        },
      ],
      /"steps.a" is not the output/,
    ],
    [
      'the same id twice',
      [
        { id: 'a', uses: 'log' },
        { id: 'a', uses: 'log' },
      ],
      /pipeline\[1\].id a: Another step has this id/,
    ],
    ['an id that is no name', [{ id: '1 a', uses: 'log' }], /Must begin with a letter/],
    ['a jump to nowhere', [{ uses: 'log', on_error: 'goto x' }], /There is no step "x" to go to/],
    ['a timeout of zero', [{ uses: 'log', timeout_seconds: 0 }], /Must be a number from 0.001 to 86400/],
    [
      'input that cannot fit',
      [{ uses: 'weather.forecast', with: { town: 'x' } }],
      /pipeline\[0\].with step_0: "city" is missing/,
    ],
    [
      'a name of the language',
      [{ uses: 'log', for_each: { items: 'params.x', as: 'steps' } }],
      /"steps" has a meaning of its own/,
    ],
    ['no step', [5], /Must be an object such as/],
    ['too many steps', Array.from({ length: 101 }, () => ({ uses: 'log' })), /A pipeline can have 100 steps/],
    ['a huge one', [{ uses: 'log', with: { x: 'x'.repeat(140_000) } }], /Must have at most 131072 characters/],
    [
      'one that is nested too deep',
      [1, 2, 3, 4].reduce<unknown>((inner) => [{ pipeline: inner }], [{ uses: 'log' }]),
      /4 levels deep/,
    ],
  ])('%s is refused with the step and the field', (_name, value, message) => {
    const { steps, problems } = compiled(value)
    expect(steps).toBeUndefined()
    expect(problems.join('\n')).toMatch(message)
  })

  test('all problems are told at once', () => {
    const problems = new Problems()
    compilePipeline([{ uses: 'nope' }, { uses: 'log', if: '1 +' }], TOOLS, problems)
    expect(() => problems.throwIfAny('The automation')).toThrow(
      /The automation is not valid. pipeline\[0\].uses \(step "step_0"\): .* pipeline\[1\].if \(step "step_1"\): /,
    )
  })
})
