import { describe, expect, test } from 'vitest'
import { readLinks } from './links.ts'

/** Handlers as JavaScript would have them: what is read is their text, so they never run. */
type Loose = (...args: never[]) => unknown
const written = (source: string): Loose => {
  const handler: Loose = () => undefined
  return Object.assign(handler, { toString: () => source })
}

describe('[A-06] literal targets are read from the code', () => {
  test.each([
    ['arrow', "(context, actions) => actions.transitionTo('a')", [{ to: 'a' }]],
    ['double quotes', '(c, a) => a.transitionTo("a")', [{ to: 'a' }]],
    ['template', '(c, a) => a.transitionTo(`a`)', [{ to: 'a' }]],
    ['function', "function (c, a) { return a.transitionTo('a') }", [{ to: 'a' }]],
    ['async function', "async function go(c, a) { return a.transitionTo('a') }", [{ to: 'a' }]],
    ['method', "go(c, a) { return a.transitionTo('a') }", [{ to: 'a' }]],
    ['async method', "async go(c, a) { return a.transitionTo('a') }", [{ to: 'a' }]],
    ['default', "(c, a = {}) => a.transitionTo('a')", [{ to: 'a' }]],
    ['destructured', "(c, { transitionTo }) => transitionTo('a')", [{ to: 'a' }]],
    ['renamed', "(c, { 'transitionTo': go }) => go('a')", [{ to: 'a' }]],
    ['inside', "(c, a) => { const { transitionTo: go } = a; return go('a') }", [{ to: 'a' }]],
    ['another name', "(c, a) => { const b = a; return b.transitionTo('a') }", [{ to: 'a' }]],
    ['either', "(c, a) => a.transitionTo(c.x ? 'a' : c.y ? 'b' : 'c')", [{ to: 'a' }, { to: 'b' }, { to: 'c' }]],
    [
      'branches',
      "(c, a) => { if (c.x) return a.transitionTo('a')\n return a.transitionTo('b') }",
      [{ to: 'a' }, { to: 'b' }],
    ],
    ['twice', "(c, a) => c.x ? a.transitionTo('a') : a.transitionTo('a', { x: 1 })", [{ to: 'a' }]],
    ['nothing', '(c, a) => undefined', []],
    ['no actions', '(c) => undefined', []],
    [
      'task by contract',
      "(c, a) => a.dispatchTask(media.cut, { params: {}, transitions: { success: 'a', 'needs review': 'b' } })",
      [
        { to: 'a', label: 'success' },
        { to: 'b', label: 'needs review' },
      ],
    ],
    [
      'task by type',
      "(c, a) => a.dispatchTask({ type: 't', transitions: { success: 'a' } })",
      [{ to: 'a', label: 'success' }],
    ],
    [
      'events of a task',
      "(c, a) => a.dispatchTask({ type: 't', transitions: { success: 'a' }, eventTransitions: { found: 'b' } })",
      [
        { to: 'a', label: 'success' },
        { to: 'b', label: 'event found' },
      ],
    ],
    [
      'person',
      "(c, a) => a.awaitHumanApproval({ message: 'm', transitions: { approved: 'a' } })",
      [{ to: 'a', label: 'approved' }],
    ],
    [
      'event',
      "(c, a) => a.waitForEvent('order.paid', { transitions: { received: 'a', timeout: 'b' } })",
      [
        { to: 'a', label: 'received' },
        { to: 'b', label: 'timeout' },
      ],
      ['event order.paid'],
    ],
    [
      'declared event',
      "(c, a) => a.waitForEvent(paid, { transitions: { received: 'a' } })",
      [{ to: 'a', label: 'received' }],
      ['an event'],
    ],
    ['sleep', "(c, a) => a.sleep('3d', { to: 'a' })", [{ to: 'a', label: 'after 3d' }], ['after 3d']],
    ['sleep in numbers', "(c, a) => a.sleep(5, { to: 'a' })", [{ to: 'a', label: 'after 5ms' }], ['after 5ms']],
    [
      'sleep for a computed time',
      "(c, a) => a.sleep(c.until, { to: 'a' })",
      [{ to: 'a', label: 'after a while' }],
      ['after a while'],
    ],
    ['child', "(c, a) => a.runBlueprint(b, { transitions: { success: 'a' } })", [{ to: 'a', label: 'success' }]],
    ['fan-out', "(c, a) => a.dispatchParallel(c.list.map((x) => m.t(x)), { into: 'a' })", [{ to: 'a', isFanIn: true }]],
    [
      'names elsewhere',
      "(c, actions) => { f({ actions: c.actions }); return actions.transitionTo('a') }",
      [{ to: 'a' }],
    ],
  ] as const)('%s', (_name, source, links, waits?: readonly string[]) => {
    const { calls: _, ...read } = readLinks(written(source))
    expect(read).toEqual({ links, isDynamic: false, ...(waits === undefined ? {} : { waits }) })
  })

  test('the text of a real function', () => {
    interface Go {
      transitionTo(to: string): unknown
    }
    expect(readLinks((_context: never, actions: Go) => actions.transitionTo('a'))).toEqual({
      links: [{ to: 'a' }],
      isDynamic: false,
    })
  })
})

test('[A-06] a status that is computed has no label', () => {
  const source = "(c, a) => a.dispatchTask({ type: 't', transitions: { [c.status]: 'a' } })"
  expect(readLinks(written(source)).links).toEqual([{ to: 'a' }])
})

describe('[A-06] what the code does not show makes it dynamic', () => {
  test.each([
    ['variable', '(c, a) => a.transitionTo(c.next)', []],
    ['number', '(c, a) => a.transitionTo(1)', []],
    ['half', "(c, a) => a.transitionTo(c.x ? 'a' : c.next)", []],
    ['other half', "(c, a) => a.transitionTo(c.x ? c.next : 'a')", []],
    ['template with a hole', '(c, a) => a.transitionTo(`a${'.concat('c.n}`)'), []],
    ['missing', '(c, a) => a.transitionTo()', []],
    ['handed on', "(c, a) => c.x ? helper(a) : a.transitionTo('a')", [{ to: 'a' }]],
    ['shorthand', '(c, actions) => helper({ actions })', []],
    ['method taken', '(c, a) => { const go = a.transitionTo; return go(1) }', []],
    ['method handed on', '(c, { transitionTo }) => helper(transitionTo)', []],
    ['computed method', '(c, a) => a[c.name]("a")', []],
    [
      'computed key',
      "(c, a) => a.dispatchTask({ type: 't', [a.x]: 1, transitions: { success: 'a' } })",
      [{ to: 'a', label: 'success' }],
    ],
    ['unknown method', "(c, a) => a.fly('a')", []],
    ['spread arguments', '(c, a) => a.transitionTo(...c.list)', []],
    ['rest of actions', '(c, { transitionTo, ...rest }) => transitionTo("a")', [{ to: 'a' }]],
    ['computed destructuring', '(c, { [x]: go }) => go("a")', []],
    ['numbered destructuring', '(c, { 1: go }) => go("a")', []],
    ['default in destructuring', '(c, { transitionTo = 1 }) => transitionTo("a")', []],
    ['list pattern', '(c, [go]) => go("a")', []],
    ['rest parameter', '(...args) => args[1].transitionTo("a")', []],
    ['options elsewhere', '(c, a) => a.dispatchTask(t, options)', []],
    ['transitions elsewhere', '(c, a) => a.dispatchTask(t, { transitions })', []],
    [
      'transitions spread',
      "(c, a) => a.dispatchTask(t, { transitions: { ...all, success: 'a' } })",
      [{ to: 'a', label: 'success' }],
    ],
    [
      'options spread',
      "(c, a) => a.dispatchTask(t, { ...all, transitions: { success: 'a' } })",
      [{ to: 'a', label: 'success' }],
    ],
    ['native code', 'function () { [native code] }', []],
    ['no function', '1', []],
    ['two statements', 'a) ; (b', []],
    ['an object', '{ a: 1 }', []],
    ['an empty object', '{}', []],
  ])('%s', (_name, source, links) => {
    const { calls: _, ...read } = readLinks(written(source))
    expect(read).toEqual({ links, isDynamic: true })
  })

  test('bound functions', () => {
    expect(readLinks(Math.max.bind(Math))).toEqual({ links: [], isDynamic: true })
  })
})

describe('[A-06] [M-02] what a state hands out is read from the code', () => {
  const named = (source: string): readonly string[] =>
    (readLinks(written(source)).calls ?? []).map(({ kind, name }) => `${kind} ${name}`)
  test.each([
    ['a type', "(c, a) => a.dispatchTask({ type: 't', transitions: { success: 'x' } })", ['task t']],
    ['two types', "(c, a) => a.dispatchTask({ type: c.x ? 't' : 'u', transitions: {} })", ['task t', 'task u']],
    ['a contract', '(c, a) => a.dispatchTask(media.cut, { transitions: {} })', ['task media.cut']],
    ['a deep contract', '(c, a) => a.dispatchTask(all.media.cut, { transitions: {} })', ['task all.media.cut']],
    ['a child', '(c, a) => a.runBlueprint(other, { transitions: {} })', ['child other']],
    ['a child by name', "(c, a) => a.runBlueprint('other', { transitions: {} })", ['child other']],
    ['a person', "(c, a) => a.awaitHumanApproval({ message: 'm', transitions: {} })", ['person ']],
    [
      'a list',
      "(c, a) => a.dispatchParallel([{ type: 't' }, m.u({}), m.u({})], { into: 'x' })",
      ['task t', 'task m.u'],
    ],
    ['each of a list', "(c, a) => a.dispatchParallel(c.list.map((one) => m.t(one)), { into: 'x' })", ['task m.t']],
    [
      'so many',
      "(c, a) => a.dispatchParallel(Array.from({ length: 3 }, (_, n) => m.t(n)), { into: 'x' })",
      ['task m.t'],
    ],
    ['the same twice', '(c, a) => c.x ? a.dispatchTask(t, {}) : a.dispatchTask(t, {})', ['task t']],
  ])('%s', (_name, source, calls) => {
    expect(named(source)).toEqual(calls)
  })

  test.each([
    ['a computed type', '(c, a) => a.dispatchTask({ type: c.type, transitions: {} })'],
    ['a type from elsewhere', '(c, a) => a.dispatchTask({ ...all, transitions: {} })'],
    ['a computed contract', '(c, a) => a.dispatchTask(media[c.name], { transitions: {} })'],
    ['a private contract', '(c, a) => a.dispatchTask(this.#media.cut, { transitions: {} })'],
    ['a list with holes', "(c, a) => a.dispatchParallel([, ...more], { into: 'x' })"],
    ['an await', "async (c, a) => a.dispatchParallel(await more, { into: 'x' })"],
    ['nothing', '(c, a) => a.dispatchTask()'],
  ])('%s is not shown', (_name, source) => {
    expect(named(source)).toEqual([])
  })
})
