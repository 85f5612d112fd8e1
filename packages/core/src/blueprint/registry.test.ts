import { isImpresarioError } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import type { RunnableBlueprint, StateNode } from './blueprint.ts'
import { blueprint } from './define.ts'
import { createBlueprintRegistry } from './registry.ts'

const ending = (name: string, version = 1) =>
  blueprint(name, { start: 'done', version }, (state) => ({ done: state.end() }))

/** A blueprint with these nodes, as a planner could make it without the builders. */
const withNodes = (nodes: readonly StateNode[]): RunnableBlueprint => ({ ...ending('planned'), nodes })
const node = (name: string, rest: Partial<StateNode> = {}): StateNode => ({
  name,
  kind: 'handler',
  isStart: false,
  links: [],
  ...rest,
})
const start = (links: StateNode['links'], rest: Partial<StateNode> = {}) => node('a', { isStart: true, links, ...rest })
const done = node('done', { kind: 'end', outcome: 'finished' })

function refusalOf(candidate: RunnableBlueprint): string {
  try {
    createBlueprintRegistry().register(candidate)
  } catch (error) {
    if (isImpresarioError(error, 'INVALID_BLUEPRINT')) return error.message
    throw error
  }
  throw new Error('it was registered')
}
const warningsOf = (nodes: readonly StateNode[]) => createBlueprintRegistry().register(withNodes(nodes)).warnings

describe('[A-03] registering', () => {
  test('finds blueprints by name and version', () => {
    const registry = createBlueprintRegistry()
    const [b2, b1, a, c] = [ending('b', 2), ending('b', 1), ending('a'), ending('c')]
    for (const each of [b2, b1, a, c]) expect(registry.register(each)).toEqual({ warnings: [] })
    expect(registry.get('b', 1)).toBe(b1)
    expect(registry.get('b')).toBe(b2)
    expect(registry.latest('b')).toBe(b2)
    expect(registry.get('b', 3)).toBeUndefined()
    expect(registry.get('d', 1)).toBeUndefined()
    expect(registry.latest('d')).toBeUndefined()
    expect(registry.names()).toEqual(['a', 'b', 'c'])
    expect(registry.list()).toEqual([a, b1, b2, c])
  })

  test('the same name and version twice is refused', () => {
    const registry = createBlueprintRegistry()
    registry.register(ending('b'))
    expect(() => registry.register(ending('b'))).toThrow(/Blueprint "b": version 1 is registered already.*raise/)
  })

  test('something else is refused', () => {
    expect(refusalOf({} as never)).toMatch(/not a blueprint/)
  })
})

describe('[A-03] a blueprint that cannot work is refused with the state and the fix', () => {
  test('a target that does not exist', () => {
    const message = refusalOf(withNodes([start([{ to: 'b' }, { to: 'done' }]), done]))
    expect(message).toBe(
      'Blueprint "planned": state "a": it leads to "b", which does not exist. Add that state or correct the name.',
    )
  })

  test('a target that is nearly the name of a state', () => {
    expect(refusalOf(withNodes([start([{ to: 'doen' }, { to: 'done' }]), done]))).toContain(
      'it leads to "doen", which does not exist. Did you mean "done"?',
    )
  })

  test('a target in the code that the compiler was not asked about', () => {
    const loose = blueprint('loose', { start: 'a' }, ((state: {
      handler: (f: unknown) => unknown
      end: () => unknown
    }) => ({
      a: state.handler((_context: never, actions: { transitionTo: (to: string) => unknown }) =>
        actions.transitionTo('b'),
      ),
      done: state.end(),
    })) as never)
    expect(refusalOf(loose)).toMatch(/Blueprint "loose": state "a": it leads to "b"/)
  })

  test('[E-01] an event transition to a state that does not exist', () => {
    interface Loose {
      handler: (f: unknown) => unknown
      end: () => unknown
    }
    const loose = blueprint('loose', { start: 'a' }, ((state: Loose) => ({
      a: state.handler((_context: never, actions: { dispatchTask: (options: unknown) => unknown }) =>
        actions.dispatchTask({ type: 't', transitions: { success: 'done' }, eventTransitions: { found: 'b' } }),
      ),
      done: state.end(),
    })) as never)
    expect(refusalOf(loose)).toMatch(/Blueprint "loose": state "a": it leads to "b"/)
  })

  test('no start, or two', () => {
    expect(refusalOf(withNodes([done]))).toMatch(/it has 0 start states.*Exactly one/)
    expect(refusalOf(withNodes([start([{ to: 'done' }]), node('b', { isStart: true }), done]))).toMatch(
      /2 start states/,
    )
  })

  test('no end state', () => {
    expect(refusalOf(withNodes([start([{ to: 'a' }])]))).toMatch(/no end state\. Add one with state\.end\(\)/)
  })

  test('no end state in reach', () => {
    expect(refusalOf(withNodes([start([{ to: 'a' }]), done]))).toMatch(/no end state can be reached.*"done"/)
  })

  test('branches that meet in a state that is no aggregator', () => {
    const message = refusalOf(withNodes([start([{ to: 'done', isFanIn: true }]), done]))
    expect(message).toMatch(/state "a": it sends branches into "done", which is no aggregator/)
    expect(refusalOf(withNodes([start([{ to: 'failed', isFanIn: true }]), done]))).toMatch(
      /"failed", which does not exist/,
    )
  })

  test('every problem is named at once', () => {
    expect(refusalOf(withNodes([start([{ to: 'x' }, { to: 'y' }])])).split('\n')).toHaveLength(3)
  })
})

describe('[A-03] what may be meant is a warning', () => {
  test('a state that nothing leads to', () => {
    expect(warningsOf([start([{ to: 'done' }]), node('island', { links: [{ to: 'a' }] }), done])).toEqual([
      expect.stringMatching(/^Blueprint "planned": state "island": nothing leads to it/),
    ])
  })

  test('a handler that chooses nothing', () => {
    expect(warningsOf([start([{ to: 'b' }, { to: 'done' }]), node('b'), done])).toEqual([
      expect.stringMatching(/state "b": its handler chooses no action/),
    ])
  })

  test('[B-07] `failed` is reached by itself, defined or not', () => {
    const failed = node('failed', { kind: 'end', outcome: 'failed' })
    expect(warningsOf([start([{ to: 'done' }]), done, failed])).toEqual([])
    expect(warningsOf([start([{ to: 'done' }, { to: 'failed' }]), done])).toEqual([])
  })

  test('nothing is said about reach when a state chooses while it runs', () => {
    expect(warningsOf([start([], { isDynamic: true }), node('island', { links: [{ to: 'a' }] }), done])).toEqual([])
  })

  test('an aggregator, a loop and two ways to one state are fine', () => {
    const meet = node('meet', { kind: 'aggregator', links: [{ to: 'a' }, { to: 'done' }] })
    expect(warningsOf([start([{ to: 'meet', isFanIn: true }, { to: 'meet' }]), meet, done])).toEqual([])
  })
})
