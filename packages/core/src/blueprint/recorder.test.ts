import { contract, eventType, isImpresarioError, LIMITS } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { child } from './actions.ts'
import type { Actions } from './actions.ts'
import { createRecorder } from './recorder.ts'
import type { ScriptState } from './script.ts'

const STATES: ReadonlyMap<string, ScriptState> = new Map<string, ScriptState>([
  ['a', { kind: 'handler' }],
  ['next', { kind: 'handler' }],
  ['join', { kind: 'aggregator' }],
  ['join_too', { kind: 'aggregator' }],
  ['failed', { kind: 'end', outcome: 'failed', computes: false }],
])
const media = contract('media', {
  cut: { input: z.object({ at: z.number() }), output: z.object({ url: z.string() }) },
})
const TASK = { kind: 'task', params: {}, priority: 0, strategy: 'default' }

const recorder = () =>
  createRecorder({ blueprint: 'b', state: 'a', find: (state) => STATES.get(state), names: () => STATES.keys() })
function settle(handler: (actions: Actions) => unknown) {
  const open = recorder()
  return open.settle(handler(open.actions))
}
const chosen = (handler: (actions: Actions) => unknown) => settle(handler).action

function refusalOf(handler: (actions: Actions) => unknown): string {
  try {
    settle(handler)
  } catch (error) {
    if (isImpresarioError(error)) return `${error.code}: ${error.message}`
    throw error
  }
  throw new Error('nothing was refused')
}
/** Calls an action as JavaScript could, past the compiler. */
const loosely =
  (name: keyof Actions, ...args: readonly unknown[]) =>
  (actions: Actions) =>
    Reflect.apply(actions[name], undefined, args) as unknown

describe('[B-02] transitionTo', () => {
  test('goes on at once', () => {
    expect(settle((actions) => actions.transitionTo('next'))).toEqual({
      action: { type: 'transition', to: 'next' },
      patch: {},
    })
  })
  test('takes a patch, as a copy', () => {
    const patch = { list: [1] }
    const result = settle(({ transitionTo }) => transitionTo('next', patch))
    patch.list.push(2)
    expect(result.patch).toEqual({ list: [1] })
  })
})

describe('[B-03] dispatchTask', () => {
  test('has defaults', () => {
    expect(chosen((actions) => actions.dispatchTask({ type: 't', transitions: { success: 'next' } }))).toEqual({
      type: 'task',
      call: { ...TASK, type: 't' },
      transitions: { success: 'next' },
    })
  })
  test('takes everything that can be said of a task', () => {
    const action = chosen((actions) =>
      actions.dispatchTask(media.cut, {
        params: { at: 1 },
        transitions: { success: 'next', timeout: 'failed' },
        priority: 5,
        strategy: 'cheapest',
        resourceRequirements: { cpuCores: 2 },
        maxCost: 0.5,
        attemptsMax: 2,
        dispatchTimeout: '30s',
        resultTimeout: 1_500,
        runTimeout: '2m',
        retryTimeouts: true,
      }),
    )
    expect(action).toEqual({
      type: 'task',
      call: {
        kind: 'task',
        type: 'media.cut',
        params: { at: 1 },
        priority: 5,
        strategy: 'cheapest',
        requirements: { cpuCores: 2 },
        maxCost: 0.5,
        attemptsMax: 2,
        dispatchTimeoutMs: 30_000,
        resultTimeoutMs: 1_500,
        runTimeoutMs: 120_000,
        retryTimeouts: true,
      },
      transitions: { success: 'next', timeout: 'failed' },
    })
  })
  test('leaves out transitions that are undefined', () => {
    const action = chosen(loosely('dispatchTask', { type: 't', transitions: { success: 'next', failure: undefined } }))
    expect(action).toMatchObject({ transitions: { success: 'next' } })
  })
})

describe('[B-11] sleep', () => {
  test('takes a span or a moment', () => {
    expect(chosen((actions) => actions.sleep('3d', { to: 'next' }))).toEqual({
      type: 'sleep',
      afterMs: 259_200_000,
      to: 'next',
    })
    expect(chosen((actions) => actions.sleep(5, { to: 'next' }))).toMatchObject({ afterMs: 5 })
    expect(chosen((actions) => actions.sleep(new Date(7), { to: 'next' }))).toEqual({
      type: 'sleep',
      until: 7,
      to: 'next',
    })
  })
  test.each([
    ['no time', [undefined, { to: 'next' }], 'without a time'],
    ['no date', [{ getTime: 1 }, { to: 'next' }], 'without a time'],
    ['a broken date', [new Date(Number.NaN), { to: 'next' }], 'without a time'],
    ['words', ['soon', { to: 'next' }], 'The time to sleep is "soon"'],
    ['no state', ['3d', {}], 'sleep without `to`'],
    ['no options', ['3d'], 'sleep without its options'],
    ['another state', ['3d', { to: 'nowhere' }], 'not a state of this blueprint'],
  ])('refuses %s', (_name, args, message) => {
    expect(refusalOf(loosely('sleep', ...args))).toContain(message)
  })
})

describe('[B-12] waitForEvent', () => {
  const paid = eventType('order.paid', z.object({ sum: z.number() }))
  const declared = (handler: (actions: Actions) => unknown) => {
    const open = createRecorder({
      blueprint: 'b',
      state: 'a',
      find: (state) => STATES.get(state),
      names: () => STATES.keys(),
      topics: ['order.paid'],
    })
    return open.settle(handler(open.actions)).action
  }
  test('takes a topic, or an event that the blueprint declares', () => {
    expect(chosen((actions) => actions.waitForEvent('paid', { transitions: { received: 'next' } }))).toEqual({
      type: 'event',
      topic: 'paid',
      transitions: { received: 'next' },
    })
    const both = { received: 'next', timeout: 'failed' } as const
    expect(
      declared((actions) => actions.waitForEvent(paid, { transitions: both, timeout: '3d', match: 'o1' })),
    ).toEqual({ type: 'event', topic: 'order.paid', transitions: both, timeoutMs: 259_200_000, key: 'o1' })
  })
  const transitions = { received: 'next' }
  test.each([
    ['no topic', ['a topic', { transitions }], 'is not a topic'],
    ['nothing', [undefined, { transitions }], 'is not a topic'],
    ['an event that is not declared', [paid, { transitions }], 'Add it there'],
    ['no transitions', ['paid', {}], 'without transitions'],
    ['no way for the event', ['paid', { transitions: { timeout: 'next' } }], 'without the transition `received`'],
    ['a key that is none', ['paid', { transitions, match: 5 }], 'match that is no text'],
    ['an empty key', ['paid', { transitions, match: '' }], 'match that is no text'],
    ['a long key', ['paid', { transitions, match: 'x'.repeat(201) }], 'match that is no text'],
    ['no options', ['paid'], 'without its options'],
  ])('refuses %s', (_name, args, message) => {
    expect(refusalOf(loosely('waitForEvent', ...args))).toContain(message)
  })
  test('refuses a topic that is not declared where some are', () => {
    expect(() => declared((actions) => actions.waitForEvent('other', { transitions }))).toThrow('Add it there')
  })
})

describe('[B-04] awaitHumanApproval', () => {
  test('pauses for a decision', () => {
    expect(
      chosen((actions) =>
        actions.awaitHumanApproval({ message: 'm', transitions: { approved: 'next' }, expires: '3d' }),
      ),
    ).toEqual({ type: 'human', message: 'm', transitions: { approved: 'next' }, expiresMs: 259_200_000 })
    expect(chosen(loosely('awaitHumanApproval', { transitions: { approved: 'next' } }))).toEqual({
      type: 'human',
      message: '',
      transitions: { approved: 'next' },
    })
  })
})

describe('[B-04] forms', () => {
  const transitions = { approved: 'next', later: 'a', rejected: 'failed', expired: 'failed' } as const
  const form = { type: 'object', properties: { budget: { type: 'number' } }, required: ['budget'] }
  const asked = (more: object) => loosely('awaitHumanApproval', { message: 'm', transitions, ...more })
  test('go with every decision but a rejection, unless they say otherwise', () => {
    expect(chosen(asked({ form }))).toMatchObject({ form, formFor: ['approved', 'later'] })
    expect(chosen(asked({ form, formFor: ['rejected'] }))).toMatchObject({ form, formFor: ['rejected'] })
    expect(chosen(asked({}))).not.toHaveProperty('form')
  })
  test('may be schemas of a library', () => {
    const schema = z.object({ budget: z.number() })
    expect(chosen(asked({ form: schema }))).toMatchObject({ form: { type: 'object', required: ['budget'] } })
  })
  test('are objects with properties, for decisions that exist, and not too long', () => {
    expect(refusalOf(asked({ formFor: ['approved'] }))).toMatch(/`formFor` without `form`/)
    expect(refusalOf(asked({ form: { type: 'string' } }))).toMatch(/no schema of an object with properties/)
    expect(refusalOf(asked({ form: { type: 'object' } }))).toMatch(/no schema of an object with properties/)
    expect(refusalOf(asked({ form: { ...form, title: 'x'.repeat(20_000) } }))).toMatch(/more than 16384 characters/)
    expect(refusalOf(asked({ form, formFor: 'approved' }))).toMatch(/no list of decisions/)
    expect(refusalOf(asked({ form, formFor: ['expired'] }))).toMatch(
      /"expired" in `formFor`, which is no decision\. There are approved, later, rejected/,
    )
    expect(refusalOf(asked({ form: null }))).toMatch(/form/i)
    expect(refusalOf(asked({ form: () => form }))).toMatch(/form/i)
  })
})

describe('[B-04] reminders', () => {
  const transitions = { approved: 'next', expired: 'failed' } as const
  test('are spans of time', () => {
    expect(
      chosen((actions) =>
        actions.awaitHumanApproval({ message: 'm', transitions, remindAfter: '1h', remindEvery: '1d', expires: '7d' }),
      ),
    ).toMatchObject({ remindAfterMs: 3_600_000, remindEveryMs: 86_400_000, transitions })
  })
  test('do not follow one another without a pause', () => {
    expect(refusalOf(loosely('awaitHumanApproval', { message: 'm', transitions, remindEvery: '10ms' }))).toMatch(
      /reminds after 10 ms\. Give remindEvery at least 1 s/,
    )
    expect(refusalOf(loosely('awaitHumanApproval', { message: 'm', transitions, remindAfter: 0 }))).toMatch(
      /Give remindAfter at least/,
    )
    expect(refusalOf(loosely('awaitHumanApproval', { message: 'm', transitions, remindAfter: 'soon' }))).toMatch(
      /remindAfter is "soon"/,
    )
  })
})

describe('[E-01] eventTransitions', () => {
  const transitions = { success: 'next' } as const
  test('say where events of the worker lead', () => {
    const eventTransitions = { spotted: 'failed' } as const
    const expected = { type: 'task', call: { ...TASK, type: 't' }, transitions, eventTransitions }
    expect(chosen((actions) => actions.dispatchTask({ type: 't', transitions, eventTransitions }))).toEqual(expected)
    const cut = { params: { at: 1 }, transitions, eventTransitions: { spotted: 'a' } } as const
    expect(chosen((actions) => actions.dispatchTask(media.cut, cut))).toMatchObject({
      eventTransitions: { spotted: 'a' },
    })
  })
  test('may be empty', () => {
    const action = chosen(loosely('dispatchTask', { type: 't', transitions, eventTransitions: { x: undefined } }))
    expect(action).not.toHaveProperty('eventTransitions')
  })
  test('lead to states that exist', () => {
    const wrong = loosely('dispatchTask', { type: 't', transitions, eventTransitions: { x: 'nowhere' } })
    expect(refusalOf(wrong)).toMatch(/leads to "nowhere", which is not a state/)
    expect(refusalOf(loosely('dispatchTask', { type: 't', transitions, eventTransitions: { x: 7 } }))).toMatch(
      /with an event transition for "x" that is no state's name/,
    )
  })
  test('have no place in a fan-out, where events are only noted', () => {
    const branch = { type: 't', eventTransitions: { x: 'next' } }
    expect(refusalOf(loosely('dispatchTask', { ...branch, transitions: { success: 'join' } }))).toMatch(
      /eventTransitions to a branch of a fan-out/,
    )
    expect(refusalOf(loosely('dispatchParallel', [branch], { into: 'join' }))).toMatch(
      /eventTransitions to a branch of a fan-out.*on its own/,
    )
  })
})

describe('[B-05] runBlueprint', () => {
  const call = { kind: 'child', blueprint: 'other', initialData: { n: 1 } }
  const transitions = { success: 'next' } as const
  test('takes a blueprint, its name, or everything at once', () => {
    const expected = { type: 'child', call, transitions }
    const initialData = { n: 1 }
    expect(chosen((actions) => actions.runBlueprint({ name: 'other' }, { initialData, transitions }))).toEqual(expected)
    expect(chosen((actions) => actions.runBlueprint({ name: 'other', initialData, transitions }))).toEqual(expected)
    expect(chosen((actions) => actions.runBlueprint({ name: 'other', transitions }))).toMatchObject({
      call: { initialData: {} },
    })
  })
})

describe('[B-08] [J-5] dispatchParallel', () => {
  test('takes calls of contracts, loose ones, and children', () => {
    const calls = [
      media.cut({ at: 1 }, { priority: 2 }),
      { type: 't' },
      child('other', { n: 1 }),
      child({ name: 'named' }, {}),
    ]
    expect(chosen((actions) => actions.dispatchParallel(calls, { into: 'join', policy: 'fail_fast' }))).toEqual({
      type: 'parallel',
      calls: [
        { ...TASK, type: 'media.cut', params: { at: 1 }, priority: 2 },
        { ...TASK, type: 't' },
        { kind: 'child', blueprint: 'other', initialData: { n: 1 } },
        { kind: 'child', blueprint: 'named', initialData: {} },
      ],
      into: 'join',
      policy: 'fail_fast',
    })
  })
  test('may be empty, and waits for all without a policy', () => {
    expect(chosen((actions) => actions.dispatchParallel([], { into: 'join' }))).toEqual({
      type: 'parallel',
      calls: [],
      into: 'join',
      policy: 'wait_all',
    })
  })
})

describe('[B-06] [J-16] one action per run', () => {
  const send = (actions: Actions, type: string, to = 'join') =>
    actions.dispatchTask({ type, transitions: { success: to } })
  const fanOut = {
    type: 'parallel',
    calls: [
      { ...TASK, type: 'x' },
      { ...TASK, type: 'y' },
    ],
    into: 'join',
    policy: 'wait_all',
  }

  test('several tasks into one aggregator are a fan-out, returned as a list or by the last', () => {
    expect(chosen((actions) => [send(actions, 'x'), send(actions, 'y')])).toEqual(fanOut)
    expect(
      chosen((actions) => {
        send(actions, 'x')
        return send(actions, 'y')
      }),
    ).toEqual(fanOut)
  })

  test('one action may be returned in a list, too', () => {
    expect(chosen((actions) => [actions.transitionTo('next')])).toEqual(
      chosen((actions) => actions.transitionTo('next')),
    )
  })

  test('one task into an aggregator is a fan-out of one', () => {
    expect(chosen((actions) => send(actions, 'x'))).toEqual({ ...fanOut, calls: [{ ...TASK, type: 'x' }] })
  })

  test.each<[string, (actions: Actions) => unknown, RegExp]>([
    [
      'two ways',
      (actions) => [actions.transitionTo('a'), actions.transitionTo('next')],
      /then calls transitionTo\. One action/,
    ],
    ['two aggregators', (actions) => [send(actions, 'x'), send(actions, 'y', 'join_too')], /then calls dispatchTask/],
    [
      'no aggregator',
      (actions) => [send(actions, 'x', 'next'), send(actions, 'y', 'next')],
      /all lead to one aggregator/,
    ],
    ['a task and a way', (actions) => [send(actions, 'x'), actions.transitionTo('next')], /then calls transitionTo/],
    ['nothing chosen', () => undefined, /chose no action\. Return one.*end state/],
    [
      'not returned',
      (actions) => {
        actions.transitionTo('next')
      },
      /chose an action \(transition\) but did not return it\. Write `return actions\.transitionTo\(…\)`/,
    ],
    [
      'one task into an aggregator that is not returned',
      (actions) => {
        actions.dispatchTask({ type: 't', transitions: { success: 'join' } })
      },
      /chose an action \(task\) but did not return it\. Write `return actions\.dispatchTask\(…\)`/,
    ],
    [
      'a fan-out that is not returned',
      (actions) => {
        actions.dispatchTask({ type: 't', transitions: { success: 'join' } })
        actions.dispatchTask({ type: 'u', transitions: { success: 'join' } })
      },
      /dispatched 2 tasks into "join" but did not return them\. Write `return \[actions\.dispatchTask\(…\), actions\.dispatchTask\(…\)\]`, or `return actions\.dispatchParallel\(\[…\], \{ into: 'join' \}\)`/,
    ],
    ['an empty list', (actions) => [actions.transitionTo('next')].slice(1), /did not return it/],
    ['an imitation', (actions) => ({ ...actions.transitionTo('next') }), /did not return it/],
    [
      'of another run',
      (actions) => [actions.transitionTo('next'), recorder().actions.transitionTo('next')],
      /did not return/,
    ],
  ])('%s is refused', (_what, handler, message) => {
    const refusal = refusalOf(handler)
    expect(refusal).toMatch(message)
    expect(refusal).toMatch(/^INVALID_BLUEPRINT: Blueprint "b", state "a": /)
  })

  test('a mistake that the handler swallows counts all the same', () => {
    expect(
      refusalOf((actions) => {
        const first = actions.transitionTo('next')
        try {
          actions.transitionTo('a')
        } catch {
          // As if nothing had happened.
        }
        return first
      }),
    ).toMatch(/One action per run/)
  })

  test('actions are of no use after the handler has returned or thrown', () => {
    for (const end of ['settle', 'close'] as const) {
      const open = recorder()
      if (end === 'close') open.close()
      else open.settle(open.actions.transitionTo('next'))
      expect(() => open.actions.transitionTo('a')).toThrow(
        /Blueprint "b", state "a": calls transitionTo after its handler has returned/,
      )
    }
  })

  test('an error of user code goes through as it is', () => {
    const params = {
      get trap(): never {
        throw new RangeError('mine')
      },
    }
    expect(() =>
      settle((actions) => actions.dispatchTask({ type: 't', params, transitions: { success: 'next' } })),
    ).toThrow(new RangeError('mine'))
  })
})

describe('[B-06] what makes no sense is refused with a clear message', () => {
  const transitions = { success: 'next' }
  test.each<[string, (actions: Actions) => unknown, RegExp]>([
    ['unknown state', (actions) => actions.transitionTo('gone'), /leads to "gone", which is not a state/],
    ['unknown target', loosely('dispatchTask', { type: 't', transitions: { success: 'next', x: 'gone' } }), /"gone"/],
    ['no state', loosely('transitionTo'), /without the name of a state/],
    ['patch', loosely('transitionTo', 'next', 1), /The patch of transitionTo is a number/],
    ['no options', loosely('dispatchTask'), /calls dispatchTask without its options/],
    ['null', loosely('dispatchTask', media.cut, null), /without its options/],
    ['no type', loosely('dispatchTask', { transitions }), /without a type/],
    ['empty type', loosely('dispatchTask', { type: '', transitions }), /without a type/],
    ['no transitions', loosely('dispatchTask', { type: 't' }), /without transitions.*success/],
    ['null transitions', loosely('dispatchTask', { type: 't', transitions: null }), /without transitions/],
    [
      'odd transition',
      loosely('dispatchTask', { type: 't', transitions: { success: 1 } }),
      /"success" that is no state's name/,
    ],
    ['strategy', loosely('dispatchTask', { type: 't', transitions, strategy: 1 }), /a strategy that is no name/],
    ['priority', loosely('dispatchTask', { type: 't', transitions, priority: 'high' }), /a priority that is no number/],
    ['cost', loosely('dispatchTask', { type: 't', transitions, maxCost: Number.NaN }), /a maxCost that is no number/],
    ['attempts', loosely('dispatchTask', { type: 't', transitions, attemptsMax: 0 }), /an attemptsMax that is not 1/],
    ['attempts', loosely('dispatchTask', { type: 't', transitions, attemptsMax: 1.5 }), /an attemptsMax that is not 1/],
    [
      'timeouts',
      loosely('dispatchTask', { type: 't', transitions, retryTimeouts: 2 }),
      /that is neither true nor false/,
    ],
    ['span', loosely('dispatchTask', { type: 't', transitions, resultTimeout: 'soon' }), /resultTimeout is "soon"/],
    ['span', loosely('dispatchTask', { type: 't', transitions, dispatchTimeout: null }), /dispatchTimeout is null/],
    ['params', loosely('dispatchTask', { type: 't', transitions, params: [] }), /The params of "t" is a list/],
    [
      'function',
      loosely('dispatchTask', { type: 't', transitions, params: { f: () => 1 } }),
      /params of "t"\.f is a function/,
    ],
    [
      'needs',
      loosely('dispatchTask', { type: 't', transitions, resourceRequirements: 1 }),
      /resourceRequirements of "t" is a/,
    ],
    ['calls', loosely('dispatchParallel', 1, { into: 'join' }), /without its calls/],
    ['no calls', loosely('dispatchParallel', null, { into: 'join' }), /without its calls/],
    ['named call', loosely('dispatchParallel', { a: 1 }, { into: 'join' }), /branch "a", without its options/],
    ['listed call', loosely('dispatchParallel', { a: [1] }, { into: 'join' }), /branch "a", without its options/],
    ['no branch name', loosely('dispatchParallel', { '': 1 }, { into: 'join' }), /a branch whose name has not from 1/],
    [
      'long branch name',
      loosely('dispatchParallel', { ['x'.repeat(500)]: 1 }, { into: 'join' }),
      /a branch whose name has not from 1/,
    ],
    ['call', loosely('dispatchParallel', [1], { into: 'join' }), /dispatchParallel, branch 0, without its options/],
    ['into', loosely('dispatchParallel', [], {}), /without `into`/],
    ['no aggregator', loosely('dispatchParallel', [], { into: 'next' }), /"next", which is not an aggregator/],
    [
      'policy',
      loosely('dispatchParallel', [], { into: 'join', policy: 'x' }),
      /the policy "x"\. Use one of 'wait_all', 'fail_fast', 'by_code'/,
    ],
    ['child', loosely('runBlueprint', {}, { transitions }), /runs a blueprint without its name/],
    ['empty child', loosely('dispatchParallel', [child('', {})], { into: 'join' }), /without its name/],
    [
      'child data',
      loosely('runBlueprint', { name: 'x' }, { transitions, initialData: 1 }),
      /initialData for "x" is a number/,
    ],
  ])('%s', (_what, handler, message) => {
    const refusal = refusalOf(handler)
    expect(refusal).toMatch(message)
    expect(refusal).toMatch(/^[A-Z_]+: Blueprint "b", state "a": /)
  })

  test('too many branches', () => {
    const calls = Array.from({ length: LIMITS.fanOutMax + 1 }, () => ({ type: 't' }))
    expect(refusalOf((actions) => actions.dispatchParallel(calls, { into: 'join' }))).toMatch(
      /^LIMIT_EXCEEDED: .*sends out 1001 branches; at most 1000/,
    )
    expect(
      refusalOf((actions) => calls.map((call) => actions.dispatchTask({ ...call, transitions: { success: 'join' } }))),
    ).toMatch(/^LIMIT_EXCEEDED: .*1001 branches/)
  })

  test('too much data', () => {
    const params = { text: 'x'.repeat(LIMITS.bodyBytesMax / 2) }
    const calls = [{ type: 't', params }, child('other', params)]
    expect(refusalOf((actions) => actions.dispatchParallel(calls, { into: 'join' }))).toMatch(
      /^LIMIT_EXCEEDED: .*bytes of data; at most 1048576.*files/,
    )
  })
})
