import type { Data } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { compilePipeline } from '../pipeline/compile.ts'
import { Problems } from '../pipeline/problem.ts'
import { advance } from './machine.ts'
import { BEGINNING } from './progress.ts'
import type { Command, ItemResult, Outcome, RunInput, RunProgress } from './progress.ts'
import { redacted, withoutMarks, withSecrets } from './secrets.ts'

const TOOLS = { named: () => ({ check: () => [] }), similar: () => [] }
const AROUND = { at: '2026-01-31T09:00:01Z', random: () => 0, secretNames: ['API_KEY'] }

function inputOf(steps: unknown, params: RunInput['params'] = {}): RunInput {
  const problems = new Problems()
  const pipeline = compilePipeline(steps, TOOLS, problems)
  expect(problems.list).toEqual([])
  return {
    pipeline: pipeline ?? { steps: [] },
    params,
    event: { topic: 'github.push', payload: { ref: 'main' } },
    now: '2026-01-31T09:00:00Z',
    automation: { id: 'a1', title: 'T' },
    run: { id: 'r1', attempt: 1 },
    outer: { steps: {}, items: {} },
  }
}

interface Played {
  readonly end: Command & { do: 'end' }
  readonly progress: RunProgress
  readonly commands: readonly Command[]
}

/** Plays a whole run; `answer` is the world. Progress goes through JSON between any two steps, as it does in a storage. */
function play(input: RunInput, answer: (command: Command) => Outcome): Played {
  const commands: Command[] = []
  let { progress, command } = advance(input, BEGINNING, undefined, AROUND)
  while (command.do !== 'end') {
    commands.push(command)
    expect(commands.length).toBeLessThan(500)
    const stored = JSON.parse(JSON.stringify(progress)) as RunProgress
    ;({ progress, command } = advance(input, stored, answer(command), AROUND))
  }
  return { end: command, progress, commands }
}

/** Answers calls with what a function gives, and plays parts as runs of their own. */
function world(tool: (name: string, input: Data) => Data | Error): (command: Command) => Outcome {
  const answer = (command: Command): Outcome => {
    switch (command.do) {
      case 'call': {
        const output = tool(command.tool, command.input)
        if (!(output instanceof Error)) return { kind: 'result', output }
        return { kind: 'error', error: { code: 'TRANSIENT_ERROR', message: output.message }, isFinal: false }
      }
      case 'parts':
        return { kind: 'items', results: command.parts.map((part) => partResult(play(part.input, answer))) }
      case 'wait':
        return { kind: 'elapsed' }
      default:
        return { kind: 'decision', decision: 'approved', comment: undefined, by: 'ann' }
    }
  }
  return answer
}

function partResult({ end }: Played): ItemResult {
  return { status: end.status, output: end.output, error: end.error }
}

describe('[K-09] steps run in order and read what came before', () => {
  test('inputs are rendered, outputs are saved, conditions skip', () => {
    const input = inputOf(
      [
        { id: 'w', uses: 'weather', with: { city: '${params.city}' }, save_as: 'weather' },
        { id: 'hot', uses: 'log', with: { text: 'hot' }, if: 'steps.weather.temperature > 25' },
        { id: 'cold', uses: 'log', with: { text: '${steps.w.temperature} in ${event.payload.ref}' } },
      ],
      { city: 'Oslo' },
    )
    const { end, progress, commands } = play(
      input,
      world((name) => (name === 'weather' ? { temperature: 3 } : { ok: true })),
    )
    expect(end).toEqual({ do: 'end', status: 'succeeded', output: { ok: true }, error: undefined })
    expect(commands).toMatchObject([
      { do: 'call', tool: 'weather', input: { city: 'Oslo' } },
      { do: 'call', tool: 'log', input: { text: '3 in main' } },
    ])
    expect(progress.records).toMatchObject([
      { id: 'w', status: 'succeeded', input: { city: 'Oslo' }, output: { temperature: 3 }, attempts: 1 },
      { id: 'hot', status: 'skipped', condition: { holds: false, values: { 'steps.weather.temperature': 3 } } },
      { id: 'cold', status: 'succeeded' },
    ])
  })

  test('an empty pipeline succeeds', () => {
    expect(
      play(
        inputOf([]),
        world(() => null),
      ).end.status,
    ).toBe('succeeded')
  })
})

describe('[K-09] errors', () => {
  test('[C-10] a step that names large values again and again fails before they are put together', () => {
    // All of them would be 2 GB.
    const large = { list: Array.from({ length: 5_000 }, (_, index) => index) }
    const many = Array.from({ length: 10_000 }, () => '${params}')
    for (const given of [many, many.join(''), { text: many.slice(0, 5_000), more: many.slice(5_000) }]) {
      const { end, commands } = play(
        inputOf([{ id: 'a', uses: 'x', with: { given } }], large),
        world(() => null),
      )
      expect(end).toMatchObject({ status: 'failed', error: { code: 'LIMIT_EXCEEDED' } })
      expect(end.error?.message).toContain('may have 262144 characters together')
      expect(commands).toEqual([])
    }
    const few = play(
      inputOf([{ id: 'a', uses: 'x', with: { given: many.slice(0, 10) } }], large),
      world(() => null),
    )
    expect(few.end.status).toBe('succeeded')
  })

  test('[C-10] of a loop as many items run side by side as what they carry allows, also inside of each other', () => {
    const list = Array.from({ length: 40 }, (_, index) => index)
    const inner = { id: 'in', for_each: { items: 'params.list', as: 'j', concurrency: 40 }, uses: 'x', with: {} }
    const outer = { id: 'out', for_each: { items: 'params.list', as: 'i', concurrency: 40 }, pipeline: [inner] }
    const widest = (text: string): readonly number[] => {
      const widths = [0, 0]
      const tools = world(() => null)
      const answer =
        (depth: number) =>
        (command: Command): Outcome => {
          if (command.do !== 'parts') return tools(command)
          widths[depth] = Math.max(widths[depth] ?? 0, command.parts.length)
          const results = command.parts.map((part) =>
            partResult(play(part.input, answer(part.name.startsWith('out') ? 1 : depth))),
          )
          return { kind: 'items', results }
        }
      const { end } = play(inputOf([outer], { list, text }), answer(0))
      expect(end).toMatchObject({ status: 'succeeded', output: { length: 40 } })
      return widths
    }
    expect(widest('')).toEqual([40, 40])
    // 200 kB each: ten of them, and two in each of these.
    expect(widest('x'.repeat(200_000))).toEqual([10, 2])
    const branches = ['a', 'b', 'c', 'd'].map((id) => ({ id, uses: 'x', with: {} }))
    const split = { id: 'out', for_each: { items: 'params.list', as: 'i', concurrency: 40 }, parallel: branches }
    const { commands } = play(
      inputOf([split], { list, text: 'x'.repeat(200_000) }),
      world(() => null),
    )
    expect(commands[0]).toMatchObject({ do: 'parts', parts: { length: 4 } })
  })

  test('[C-10] what is nested too deep fails its step, and the run goes on where the step says so', () => {
    const nested = (levels: number): Data => (levels === 0 ? 1 : [nested(levels - 1)])
    const steps = [
      { id: 'a', uses: 'x', on_error: 'continue' },
      { id: 'b', uses: 'y', with: { text: '${steps.a.error.code}' } },
    ]
    const deep = play(
      inputOf(steps),
      world((name, input) => (name === 'x' ? nested(49) : input)),
    )
    expect(deep.end).toMatchObject({ status: 'succeeded', output: { text: 'LIMIT_EXCEEDED' } })
    const { progress } = play(
      inputOf([
        { id: 'a', uses: 'x' },
        { id: 'b', uses: 'y', with: { list: ['${steps.a}'] } },
      ]),
      world(() => nested(48)),
    )
    expect(progress.records).toMatchObject([
      { status: 'succeeded' },
      { status: 'failed', input: null, error: { message: 'The input of the step is nested deeper than 48 levels.' } },
    ])
  })

  test('a step is retried with backoff, and then fails the run', () => {
    const input = inputOf([
      { id: 'a', uses: 'x', retry: { max_attempts: 3, backoff: 'exponential', initial_seconds: 2 } },
    ])
    const { end, progress, commands } = play(
      input,
      world(() => new Error('away')),
    )
    expect(commands.map((command) => (command.do === 'wait' ? command.ms : command.do))).toEqual([
      'call',
      2_000,
      'call',
      4_000,
      'call',
    ])
    expect(end).toMatchObject({ status: 'failed', error: { code: 'TRANSIENT_ERROR', message: 'away' } })
    expect(progress.records).toMatchObject([{ id: 'a', status: 'failed', attempts: 3 }])
  })

  test('an error that is final is not retried', () => {
    const input = inputOf([{ uses: 'x', retry: 5 }])
    const { commands } = play(input, () => ({
      kind: 'error',
      error: { code: 'PERMANENT_ERROR', message: 'no' },
      isFinal: true,
    }))
    expect(commands).toHaveLength(1)
  })

  test('on_error continue: later steps see the error', () => {
    const input = inputOf([
      { id: 'a', uses: 'bad', on_error: 'continue' },
      { id: 'b', uses: 'good', with: { why: '${steps.a.error.message}' } },
    ])
    const { end, commands } = play(
      input,
      world((name) => (name === 'bad' ? new Error('broken') : 1)),
    )
    expect(end.status).toBe('succeeded')
    expect(commands.at(-1)).toMatchObject({ input: { why: 'broken' } })
  })

  test('on_error goto: the run goes on there, and not for ever', () => {
    const input = inputOf([
      { id: 'a', uses: 'bad', on_error: 'goto c' },
      { id: 'b', uses: 'x' },
      { id: 'c', uses: 'good' },
    ])
    const { commands } = play(
      input,
      world((name) => (name === 'bad' ? new Error('broken') : 1)),
    )
    expect(commands.map((command) => command.do === 'call' && command.tool)).toEqual(['bad', 'good'])
    const loop = inputOf([{ id: 'a', uses: 'bad', on_error: 'goto a' }])
    expect(
      play(
        loop,
        world(() => new Error('broken')),
      ).end,
    ).toMatchObject({ error: { code: 'JUMP_REFUSED' } })
  })

  test('a template that fails at run time fails its step, with the reason', () => {
    const input = inputOf([{ id: 'a', uses: 'x', with: { y: '${params.gone}' } }])
    expect(
      play(
        input,
        world(() => 1),
      ).end,
    ).toMatchObject({ status: 'failed', error: { code: 'INVALID_EXPRESSION' } })
  })
})

describe('[K-09] steps inside steps', () => {
  test('for_each runs its items, at most as many at once as asked for, and keeps their order', () => {
    const input = inputOf(
      [
        {
          id: 'send',
          for_each: { items: 'params.people', as: 'who', concurrency: 2 },
          uses: 'mail',
          with: { to: '${who.id}-${index}' },
        },
      ].map((step) => ({ ...step, with: { to: '${who.id}' } })),
      { people: [{ id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'd' }, { id: 'e' }] },
    )
    const { end, commands } = play(
      input,
      world((_name, given) => (given as { to: string }).to),
    )
    expect(end.output).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(commands.map((command) => (command.do === 'parts' ? command.parts.length : 0))).toEqual([2, 2, 1])
  })

  test('an item that fails fails the step, or is kept as an error', () => {
    const steps = (more: object) => [{ id: 's', for_each: 'params.list', uses: 'x', with: { n: '${item}' }, ...more }]
    const tool = world((_name, given) => ((given as { n: number }).n === 2 ? new Error('two') : 'ok'))
    expect(play(inputOf(steps({}), { list: [1, 2, 3] }), tool).end).toMatchObject({
      status: 'failed',
      error: { message: 'two' },
    })
    const kept = play(inputOf(steps({ on_error: 'continue' }), { list: [1, 2, 3] }), tool).end
    expect(kept.output).toEqual(['ok', { error: { code: 'TRANSIENT_ERROR', message: 'two' } }, 'ok'])
    expect(play(inputOf(steps({}), { list: [] }), tool).end).toMatchObject({ status: 'succeeded', output: [] })
    expect(play(inputOf(steps({}), { list: 'no' }), tool).end).toMatchObject({ status: 'failed' })
  })

  test('parallel branches and pipelines inside see outer outputs and give theirs', () => {
    const input = inputOf([
      { id: 'first', uses: 'one' },
      {
        id: 'both',
        parallel: [
          { id: 'l', uses: 'echo', with: { v: '${steps.first}' } },
          { id: 'r', uses: 'echo', with: { v: 2 } },
        ],
      },
      {
        id: 'inner',
        pipeline: [
          { id: 'x', uses: 'echo', with: { v: '${steps.both.r.v}' } },
          { uses: 'echo', with: { v: '${steps.x.v + 1}' } },
        ],
      },
    ])
    const { progress } = play(
      input,
      world((name, given) => (name === 'one' ? 1 : given)),
    )
    expect(progress.outputs).toEqual({ first: 1, both: { l: { v: 1 }, r: { v: 2 } }, inner: { v: 3 } })
  })
})

describe('[K-09] approvals', () => {
  const steps = [{ id: 'ask', approval: { message: 'Send to ${params.n}?', expires_seconds: 60 } }, { uses: 'x' }]
  const decided =
    (decision: string) =>
    (command: Command): Outcome =>
      command.do === 'ask' ? { kind: 'decision', decision, comment: 'c', by: 'ann' } : { kind: 'result', output: 1 }

  test('the first decision goes on; another one fails the step, unless the step saves it', () => {
    expect(play(inputOf(steps, { n: 3 }), decided('approved'))).toMatchObject({
      end: { status: 'succeeded' },
      commands: [{ do: 'ask', message: 'Send to 3?', expiresSeconds: 60 }, { do: 'call' }],
    })
    expect(play(inputOf(steps, { n: 3 }), decided('rejected')).end).toMatchObject({ error: { code: 'REJECTED' } })
    const saved = [
      { ...steps[0], save_as: 'answer' },
      { uses: 'x', if: "steps.answer.decision == 'approved'" },
    ]
    expect(play(inputOf(saved, { n: 3 }), decided('rejected'))).toMatchObject({
      end: { status: 'succeeded' },
      commands: [{ do: 'ask' }],
    })
  })

  test('nobody decides in time', () => {
    expect(play(inputOf(steps, { n: 3 }), () => ({ kind: 'expired' })).end).toMatchObject({
      error: { code: 'APPROVAL_EXPIRED' },
    })
  })
})

test('[K-10] secrets are marks in everything that is stored, and values only in the call', () => {
  const input = inputOf([{ id: 'a', uses: 'http', with: { header: 'Bearer ${secrets.API_KEY}' } }])
  const { progress, command } = advance(input, BEGINNING, undefined, AROUND)
  expect(withoutMarks(progress.pending?.input)).toEqual({ header: 'Bearer [secret API_KEY]' })
  const sent = withSecrets((command as Command & { do: 'call' }).input, (name) => `value-of-${name}`)
  expect(sent).toEqual({ header: 'Bearer value-of-API_KEY' })
  expect(redacted({ body: ['echo value-of-API_KEY'] }, { API_KEY: 'value-of-API_KEY' })).toEqual({
    body: ['echo [secret API_KEY]'],
  })
  expect(JSON.stringify(progress)).not.toContain('value-of')
})

test('[K-10] secrets are taken out of what a tool gives back in whatever form it gives them back', () => {
  const secret = 'k-"é\n/+ 1% ü?x'
  const shown = '[secret KEY]'
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const given: Readonly<Record<string, string>> = {
    plain: secret,
    json: JSON.stringify({ a: secret }),
    'json in json': JSON.stringify({ a: JSON.stringify({ a: secret }) }),
    ascii: String.raw`{"a": "k-\"\u00e9\n/+ 1% \u00fc?x"}`,
    component: `a=${encodeURIComponent(secret)}`,
    form: new URLSearchParams({ a: secret }).toString(),
    address: new URL(`http://x/?q=${secret.replaceAll('\n', '')}`).search,
    base64: base64(secret),
    'basic, one before': base64(`u:::${secret}`),
    'basic, two before': base64(`user:${secret}:more`),
    'basic, none before': base64(`me:${secret}`),
  }
  for (const [form, text] of Object.entries(given)) {
    const known = form === 'address' ? secret.replaceAll('\n', '') : secret
    const clean = redacted(text, { KEY: known })
    expect({ form, clean, isShown: clean.includes(shown) }).toMatchObject({ isShown: true })
    expect({ form, clean }).not.toMatchObject({ clean: expect.stringMatching(/k-|1%|1\+/) as string })
  }
  // A message that was cut off in the middle of it.
  expect(redacted('the key was very-secr', { KEY: 'very-secret-value' })).toBe(`the key was ${shown}`)
  expect(redacted('it is very good', { KEY: 'very-secret-value' })).toBe('it is very good')
  // What is no text that can be sent does not stop it.
  expect(redacted('\uD800abcdef!', { KEY: '\uD800abcdef' })).toBe(`${shown}!`)
})
