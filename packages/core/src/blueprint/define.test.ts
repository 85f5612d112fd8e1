/* oxlint-disable typescript/no-unsafe-assignment, typescript/no-unsafe-member-access -- a state history without a schema is `any` by design */
import { isImpresarioError, LIMITS } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Job } from '../job/job.ts'
import { blueprint, isBlueprint } from './define.ts'
import type { PolicyOverrides } from './define.ts'

const job: Job = {
  id: 'j1',
  blueprint: 'b',
  blueprintVersion: 1,
  client: { id: 'c1' },
  status: 'running',
  state: 'a',
  visit: 1,
  failures: 0,
  initialData: { n: 1 },
  stateHistory: { kept: { x: 1 } },
  branches: {},
  priority: 0,
  depth: 0,
  trail: [],
  createdAt: 0,
  updatedAt: 0,
}

function refusalOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (isImpresarioError(error)) return `${error.code}: ${error.message}`
    throw error
  }
  throw new Error('nothing was refused')
}

const plain = blueprint('plain', { start: 'a' }, (state) => ({
  a: state.handler((_context, actions) => actions.transitionTo('b')),
  b: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
  error: state.end(),
  stopped: state.end({ outcome: 'cancelled', result: () => 1 }),
}))

describe('[A-01] a blueprint is a script for the rules', () => {
  test('it names its states, their kinds and their outcomes', () => {
    expect(plain.name).toBe('plain')
    expect(plain.version).toBe(1)
    expect(plain.start).toBe('a')
    expect(plain.endpoint).toBeUndefined()
    expect(plain.state('a')).toEqual({ kind: 'handler' })
    expect(plain.state('b')).toEqual({ kind: 'aggregator' })
    expect(plain.state('done')).toEqual({ kind: 'end', outcome: 'finished', computes: false })
    expect(plain.state('error')).toEqual({ kind: 'end', outcome: 'error', computes: false })
    expect(plain.state('stopped')).toEqual({ kind: 'end', outcome: 'cancelled', computes: true })
    expect(plain.state('toString')).toBeUndefined()
  })

  test('[B-07] the state `failed` is always there', () => {
    expect(plain.state('failed')).toEqual({ kind: 'end', outcome: 'failed', computes: false })
    const own = blueprint('own', { start: 'failed' }, (state) => ({ failed: state.end({ outcome: 'finished' }) }))
    expect(own.state('failed')).toEqual({ kind: 'end', outcome: 'finished', computes: false })
    const named = blueprint('named', { start: 'failed' }, (state) => ({ failed: state.end() }))
    expect(named.state('failed')).toEqual({ kind: 'end', outcome: 'failed', computes: false })
  })

  test('a factor of waits that makes no sense is refused', () => {
    for (const backoffFactor of [0, 11, Number.NaN]) {
      expect(() => blueprint('odd', { start: 'done', backoffFactor }, (state) => ({ done: state.end() }))).toThrow(
        /backoffFactor is .*\. Give a number from 1 to 10\./,
      )
    }
  })

  test('its policy has defaults and can be overridden', () => {
    expect(plain.policy).toEqual({
      transitionsMax: LIMITS.transitionsMaxDefault,
      handlerAttemptsMax: LIMITS.handlerAttemptsMax,
      taskAttemptsMax: LIMITS.taskAttemptsMax,
      backoffMs: LIMITS.backoffMs,
      backoffMsMax: LIMITS.backoffMsMax,
      runTimeoutMs: LIMITS.runTimeoutMs,
    })
    const policy = { transitionsMax: 5, handlerAttemptsMax: 1, taskAttemptsMax: 2, backoffMs: 3, backoffMsMax: 4 }
    const tuned = blueprint(
      'tuned',
      {
        start: 'done',
        version: 3,
        endpoint: '/tuned',
        apiVersion: 'v2',
        ...policy,
        runTimeout: '10m',
        executionTimeout: '1h',
        retryTimeouts: true,
        backoffFactor: 1.5,
      },
      (state) => ({ done: state.end() }),
    )
    expect(tuned.policy).toEqual({
      ...policy,
      backoffFactor: 1.5,
      runTimeoutMs: 600_000,
      executionTimeoutMs: 3_600_000,
      retryTimeouts: true,
    })
    expect(tuned.version).toBe(3)
    expect(tuned.endpoint).toBe('/tuned')
    expect(tuned.apiVersion).toBe('v2')
  })

  test('[A-09] what it says itself stays apart from the defaults, also where it says the same', () => {
    expect(plain.ownPolicy).toEqual({})
    const same = { taskAttemptsMax: LIMITS.taskAttemptsMax, runTimeout: LIMITS.runTimeoutMs }
    const own = blueprint('own', { start: 'done', ...same }, (state) => ({ done: state.end() }))
    expect(own.policy).toEqual(plain.policy)
    expect(own.ownPolicy).toEqual({ taskAttemptsMax: LIMITS.taskAttemptsMax, runTimeoutMs: LIMITS.runTimeoutMs })
  })

  test('[C-04] the default time for runs does not cut its own time for results short', () => {
    const policyOf = (shape: PolicyOverrides) =>
      blueprint('timed', { start: 'done', ...shape }, (state) => ({ done: state.end() })).policy
    const timed = policyOf({ resultTimeout: '2h' })
    expect([timed.resultTimeoutMs, timed.runTimeoutMs]).toEqual([7_200_000, undefined])
    const both = policyOf({ resultTimeout: '2h', runTimeout: '1m' })
    expect([both.resultTimeoutMs, both.runTimeoutMs]).toEqual([7_200_000, 60_000])
  })
})

describe('[A-03] what is wrong in itself is refused where it is written', () => {
  const define = (name: string, shape: object, states: Readonly<Record<string, unknown>>) => () =>
    // Boundary: as JavaScript would call it.
    blueprint(name, { start: 'done', ...shape } as never, (() => states) as never)
  const done = { definition: { kind: 'end' } }

  test.each<[string, () => unknown, RegExp]>([
    ['name', define('two words', {}, { done }), /Blueprint "two words": a name begins with a letter/],
    ['long name', define('x'.repeat(201), {}, { done }), /at most 200 characters/],
    ['start', define('b', { start: 'x' }, { done }), /Blueprint "b": it starts in "x".*\("done"\).*Set `start`/],
    ['no states', define('b', {}, {}), /it starts in "done"/],
    ['version', define('b', { version: 0 }, { done }), /version is 0\. Give a whole number from 1/],
    ['version', define('b', { version: 1.5 }, { done }), /version is 1\.5/],
    ['apiVersion', define('b', { apiVersion: 'v2/x' }, { done }), /apiVersion is "v2\/x"\. It is one part of a path/],
    ['limit', define('b', { transitionsMax: 5_000 }, { done }), /transitionsMax is 5000.* from 1 to 1000/],
    ['span', define('b', { resultTimeout: 'soon' }, { done }), /Blueprint "b": resultTimeout is "soon"/],
    ['span', define('b', { runTimeout: 'soon' }, { done }), /Blueprint "b": runTimeout is "soon"/],
    ['flag', define('b', { retryTimeouts: 'yes' }, { done }), /retryTimeouts is yes\. Give true or false/],
    ['no state', define('b', {}, { done: 1 }), /Blueprint "b", state "done": is not a state/],
    ['null', define('b', {}, { done: null }), /is not a state/],
    ['bare object', define('b', {}, { done: {} }), /is not a state/],
    ['empty name', define('b', {}, { '': done }), /state "": a name has from 1 to 200/],
    ['long state', define('b', {}, { ['x'.repeat(201)]: done }), /a name has from 1 to 200/],
  ])('%s', (_what, work, message) => {
    const refusal = refusalOf(work)
    expect(refusal).toMatch(message)
    expect(refusal).toMatch(/^INVALID_BLUEPRINT/)
  })

  test('a handler that is no function', () => {
    const broken = undefined as never
    const work = () => blueprint('b', { start: 'a' }, (state) => ({ a: state.handler(broken, { to: ['a'] }) }))
    expect(refusalOf(work)).toMatch(/state "a": its handler is not a function/)
  })

  test('[A-04] a bad expression, with the place of the mistake', () => {
    const work = () =>
      blueprint('b', { start: 'a' }, (state) => ({
        a: state.when("context.client.plan = 'gold'", (_context, actions) => actions.transitionTo('done')),
        done: state.end(),
      }))
    expect(refusalOf(work)).toMatch(/^INVALID_EXPRESSION: Blueprint "b", state "a": .*position 21.*Use "=="/)
  })
})

describe('[A-10] the input schema checks and completes the initial data', () => {
  const schema = z.object({ path: z.string(), size: z.number().default(1) })
  const typed = blueprint('typed', { input: schema, start: 'done' }, (state) => ({ done: state.end() }))

  test('good data', async () => {
    expect(await typed.validateInput({ path: 'p', extra: true })).toEqual({ value: { path: 'p', size: 1 } })
  })
  test('bad data', async () => {
    expect(await typed.validateInput({ path: 1 })).toEqual({ problems: [expect.stringMatching(/^path: .*string/)] })
  })
  test('no schema takes everything as it is, without a copy', async () => {
    const data = { any: [1] }
    const checked = await plain.validateInput(data)
    expect('value' in checked && checked.value).toBe(data)
  })
  test('a schema that makes something else than JSON', async () => {
    const odd = blueprint('odd', { input: z.object({ at: z.coerce.date() }), start: 'done' }, (state) => ({
      done: state.end(),
    }))
    expect(await odd.validateInput({ at: 0 })).toEqual({
      problems: [expect.stringMatching(/initialData\.at is an instance of Date/)],
    })
  })
})

describe('[A-08] a job of an older version goes on by an explicit function only', () => {
  const moving = (target: string) =>
    blueprint(
      'moving',
      {
        start: 'done',
        version: 2,
        migrate: (old) => {
          if (old.blueprintVersion !== 1) return undefined
          old.stateHistory.kept.x = 2
          return { state: target, stateHistory: { ...old.stateHistory, from: old.state, n: old.initialData['n'] } }
        },
      },
      (state) => ({ done: state.end() }),
    )

  test('without one it cannot', () => {
    expect(plain.migrate(job)).toBeUndefined()
  })
  test('with one it may, and the stored job stays as it is', () => {
    expect(moving('done').migrate(job)).toEqual({
      state: 'done',
      stateHistory: { kept: { x: 2 }, from: 'a', n: 1 },
    })
    expect(job.stateHistory).toEqual({ kept: { x: 1 } })
    expect(moving('done').migrate({ ...job, blueprintVersion: 7 })).toBeUndefined()
  })
  test('it has to lead to a state of the new version', () => {
    expect(refusalOf(() => moving('gone').migrate(job))).toMatch(/migrate leads to "gone"/)
  })
})

test('[A-09] a blueprint is told from anything else', () => {
  expect(isBlueprint(plain)).toBe(true)
  for (const other of [
    undefined,
    null,
    1,
    'plain',
    {},
    { name: 'plain', version: 1 },
    { ...plain, nodes: undefined },
  ]) {
    expect(isBlueprint(other)).toBe(false)
  }
})

test('[A-06] every state is also a node', () => {
  const sendAnywhere = () => ({ type: 't', transitions: { success: 'a' } }) as const
  const list = blueprint('list', { start: 'a' }, (state) => ({
    a: state
      .when("context.client.plan == 'gold'", (_context, actions) => actions.transitionTo('done'))
      .when(
        (context) => context.jobId === '',
        (_context, actions) => actions.dispatchTask({ type: 't', transitions: { success: 'done' } }),
      )
      .when(
        (context) => {
          const long = 'a condition of several lines'
          return context.jobId === long
        },
        (_context, actions) => actions.transitionTo(String(1)),
        { to: ['done', 'other'] },
      )
      .handler((_context, actions) => actions.transitionTo('other')),
    other: state.handler(
      (context, actions) =>
        context.jobId === '' ? actions.transitionTo('done') : actions.dispatchTask(sendAnywhere()),
      { to: ['done', 'a'] },
    ),
    done: state.end(),
  }))
  expect(list.nodes).toEqual([
    {
      name: 'a',
      kind: 'handler',
      isStart: true,
      links: [
        { to: 'done', label: "context.client.plan == 'gold'" },
        { to: 'done', label: expect.stringMatching(/^context\.jobId === ["']{2}: success$/) },
        { to: 'done', label: 'condition' },
        { to: 'other', label: 'condition' },
        { to: 'other', label: 'otherwise' },
      ],
      calls: [{ kind: 'task', name: 't' }],
    },
    { name: 'other', kind: 'handler', isStart: false, links: [{ to: 'done' }, { to: 'a' }] },
    { name: 'done', kind: 'end', isStart: false, outcome: 'finished', links: [] },
  ])
  expect(list.nodes).toBe(list.nodes)
})
