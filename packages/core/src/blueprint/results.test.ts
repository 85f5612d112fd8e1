import { contract } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { open } from '../job/samples.ts'
import type { BranchOutcome, Job } from '../job/job.ts'
import type { StateResult } from '../job/result.ts'
import { child } from './actions.ts'
import type { ActionToken } from './actions.ts'
import type { RunnableBlueprint, TurnOutput } from './blueprint.ts'
import type { Context } from './context.ts'
import { blueprint } from './define.ts'

const media = contract('media', {
  transcode: {
    input: z.object({}),
    output: z.object({ url: z.string() }),
    outcomes: { needs_review: z.object({ reason: z.string() }) },
  },
  thumbnail: { input: z.object({ at: z.number() }), output: z.object({ image: z.string() }) },
})
const page = blueprint('page', { output: z.object({ link: z.string() }), start: 'done' }, (state) => ({
  done: state.end({ result: () => ({ link: 'l' }) }),
}))

const { signal } = new AbortController()
async function perform(script: RunnableBlueprint, change: Partial<Job> = {}): Promise<TurnOutput> {
  return script.perform({ job: { ...open().job, blueprint: 'b', state: 'a', ...change }, signal })
}

/** Calls an action as JavaScript may. */
function loosely(action: (...given: never[]) => ActionToken, ...given: readonly unknown[]): ActionToken {
  return Reflect.apply(action, undefined, given) as ActionToken
}

/** What a handler sees of a job with these results. */
async function see<T>(look: (context: Context) => T, results?: readonly StateResult[], stateHistory: JsonObject = {}) {
  const seen: T[] = []
  const script = blueprint('b', { start: 'a' }, (state) => ({
    a: state.handler((context, actions) => {
      seen.push(look(context))
      return actions.transitionTo('done')
    }),
    transcode: state.end(),
    done: state.end(),
  }))
  await perform(script, { ...(results === undefined ? {} : { results }), stateHistory })
  return seen[0]
}

describe('[B-14] resultOf', () => {
  const first: StateResult = { state: 'transcode', of: 'media.transcode', keys: ['url'] }

  test('gives what the task gave, also when the state history has something else by now', async () => {
    expect(await see(({ resultOf }) => resultOf(media.transcode), [first], { url: 'u', other: 1 })).toEqual({
      url: 'u',
    })
    const moved = [{ ...first, keys: [], data: { url: 'u' } }]
    expect(await see(({ resultOf }) => resultOf(media.transcode), moved, { url: 'v' })).toEqual({ url: 'u' })
    expect(await see(({ resultOf }) => resultOf('media.transcode'), [first], { url: 'u' })).toEqual({ url: 'u' })
  })

  test('gives a copy: the state history cannot be changed through it', async () => {
    const stateHistory = { list: { x: 1 } }
    await see(({ resultOf }) => Object.assign(resultOf('t') ?? {}, { y: 2 }), [{ state: 'x', of: 't', at: 'list' }], {
      ...stateHistory,
    })
    expect(stateHistory).toEqual({ list: { x: 1 } })
  })

  test('gives the newest, or that of one state', async () => {
    const results: readonly StateResult[] = [
      { state: 'transcode', of: 'media.transcode', data: { url: 'first' } },
      { state: 'done', of: 'media.transcode', data: { url: 'second' } },
    ]
    expect(await see(({ resultOf }) => resultOf(media.transcode).url, results)).toBe('second')
    expect(await see(({ resultOf }) => resultOf(media.transcode, { from: 'transcode' }).url, results)).toBe('first')
  })

  test("gives a child's result, and keeps apart tasks and blueprints of one name", async () => {
    const results: readonly StateResult[] = [
      { state: 'transcode', of: 'page', isChild: true, at: 'page' },
      { state: 'done', of: 'page', data: 'a task' },
    ]
    const seen = await see((context) => [context.resultOf(page), context.resultOf('page')], results, {
      page: { link: 'l' },
    })
    expect(seen).toEqual([{ link: 'l' }, 'a task'])
  })

  test('gives the data of a named outcome', async () => {
    const results = [{ ...first, status: 'needs_review', keys: [], data: { reason: 'dark' } }]
    const look = ({ resultOf }: Context): string => resultOf(media.transcode, { status: 'needs_review' }).reason
    expect(await see(look, results)).toBe('dark')
    await expect(see(({ resultOf }) => resultOf(media.transcode), results)).rejects.toThrow(
      'Blueprint "b", state "a": asks for the result of "media.transcode" with the status "success", ' +
        'but it ended in "transcode" with "needs_review". Ask for { status: \'needs_review\' }',
    )
  })

  test('says what is wrong when there is none', async () => {
    const ask = ({ resultOf }: Context): object => resultOf(media.thumbnail)
    await expect(see(ask)).rejects.toThrow(
      'Blueprint "b", state "a": asks for the result of "media.thumbnail", which no state of this job has given. ' +
        'There is none yet.',
    )
    await expect(see(ask, [first])).rejects.toThrow('There are: "media.transcode" in "transcode".')
    const from = ({ resultOf }: Context): object => resultOf(media.transcode, { from: 'done' })
    await expect(see(from, [first])).rejects.toThrow('which the state "done" has not given in this job')
    const wrong = ({ resultOf }: Context): object => resultOf(media.transcode, { from: 'gone' })
    await expect(see(wrong, [first])).rejects.toThrow('calls resultOf with from: "gone", which is not a state')
    const dropped = see(({ resultOf }) => resultOf(media.transcode), [{ ...first, keys: [], isDropped: true }])
    await expect(dropped).rejects.toThrow('which was dropped: the results of this job are too large together')
  })

  test.each([undefined, 1, {}, { name: 1 }])('refuses %j for a task', async (source) => {
    const ask = ({ resultOf }: Context): unknown => Reflect.apply(resultOf, undefined, [source])
    await expect(see(ask)).rejects.toThrow('calls resultOf without a task or a blueprint')
  })
})

describe('[B-14] outcomeOf', () => {
  test('says how a task ended, whatever the way, and nothing of one that has not', async () => {
    const error = { code: 'TIMEOUT_ERROR', message: 'late' } as const
    const results: readonly StateResult[] = [{ state: 'transcode', of: 'media.transcode', status: 'failure', error }]
    expect(await see(({ outcomeOf }) => outcomeOf(media.transcode), results)).toEqual({ status: 'failure', error })
    expect(await see(({ outcomeOf }) => outcomeOf(media.thumbnail), results)).toBeUndefined()
    expect(await see(({ outcomeOf }) => outcomeOf(page))).toBeUndefined()
  })

  test('a status that the contract does not have is a failure of its worker', async () => {
    const results: readonly StateResult[] = [{ state: 'transcode', of: 'media.transcode', status: 'odd', data: 1 }]
    const message = '"media.transcode" ended with the status "odd", which its contract does not have.'
    expect(await see(({ outcomeOf }) => outcomeOf(media.transcode), results)).toEqual({
      status: 'failure',
      error: { code: 'CONTRACT_VIOLATION_ERROR', message },
    })
    expect(await see(({ outcomeOf }) => outcomeOf('media.transcode'), results)).toEqual({ status: 'odd', data: 1 })
  })
})

describe('[B-14] written', () => {
  test('gives the values that were asked for', async () => {
    expect(await see(({ written }) => written('a', 'b'), [], { a: 1, b: null, c: 3 })).toEqual({ a: 1, b: null })
  })

  test('says which are missing', async () => {
    await expect(see(({ written }) => written('a', 'b', 'toString'), [], { a: 1 })).rejects.toThrow(
      'Blueprint "b", state "a": asks for "b", "toString" of stateHistory, which no state of this job has written.',
    )
  })
})

const gathering = blueprint('b', { start: 'spread' }, (state) => ({
  spread: state.handler((_context, actions) =>
    actions.dispatchParallel(
      { poster: media.thumbnail({ at: 1 }), stills: [media.thumbnail({ at: 2 })], page: child(page, {}) },
      { into: 'a' },
    ),
  ),
  a: state.aggregator({ poster: media.thumbnail, stills: [media.thumbnail], page }, ({ results }, actions) =>
    actions.transitionTo('done', { results }),
  ),
  done: state.end(),
}))

describe('[B-14] named branches', () => {
  const gathered = async (aggregationResults: Record<string, BranchOutcome>): Promise<unknown> =>
    (await perform(gathering, { aggregationResults })).stateHistory['results']

  test('[B-08] are sent out under their names', async () => {
    const { action } = await perform(gathering, { state: 'spread' })
    expect(action).toMatchObject({
      type: 'parallel',
      calls: [
        { type: 'media.thumbnail', as: 'poster', params: { at: 1 } },
        { type: 'media.thumbnail', as: 'stills', params: { at: 2 } },
        { blueprint: 'page', as: 'page' },
      ],
    })
  })

  test('[A-05] their results are found under their names, lists in the order of sending', async () => {
    const error = { code: 'TIMEOUT_ERROR', message: 'late' } as const
    const results = await gathered({
      'j-1-0': { as: 'stills', status: 'success', data: { image: '1' } },
      'j-1-1': { as: 'page', status: 'success', data: { link: 'l' } },
      'j-1-2': { as: 'poster', status: 'failure', error },
      'j-1-3': { as: 'stills', status: 'odd' },
    })
    expect(results).toMatchObject({
      poster: { status: 'failure', error },
      stills: [
        { status: 'success', data: { image: '1' } },
        { status: 'failure', error: { code: 'CONTRACT_VIOLATION_ERROR' } },
      ],
      page: { status: 'success', data: { link: 'l' } },
    })
  })

  test('a list may be empty, and a branch that was not sent is an error', async () => {
    const one = { poster: { as: 'poster', status: 'cancelled' }, page: { as: 'page', status: 'success' } }
    expect(await gathered(one)).toMatchObject({ stills: [] })
    await expect(gathered({ page: one.page })).rejects.toThrow(
      'Blueprint "b", state "a": gathers the branch "poster", but the fan-out that led to it sent none.',
    )
    await expect(perform(gathering)).rejects.toThrow('gathers the branch "poster"')
  })

  test.each([
    ['a missing branch', { stills: [] }, /sends 0 branches "poster" into "a", which gathers one/],
    ['one too many', { poster: [{ type: 't' }, { type: 't' }] }, /sends 2 branches "poster"/],
    [
      'a branch that is not gathered',
      { banner: { type: 't' } },
      /the branch "banner" into "a", which gathers poster, s/,
    ],
    [
      'branches without names',
      [{ type: 't' }],
      /a branch without a name into "a".*Use actions.dispatchParallel\({ poster/,
    ],
  ])('%s is refused when it is sent', async (_what, calls, message) => {
    const script = blueprint('b', { start: 'spread' }, (state) => ({
      spread: state.handler((_context, { dispatchParallel }) => loosely(dispatchParallel, calls, { into: 'a' }), {
        to: ['a'],
      }),
      a: state.aggregator({ poster: 't', stills: ['t'] }, (_context, actions) => actions.transitionTo('done')),
      done: state.end(),
    }))
    await expect(perform(script, { state: 'spread' })).rejects.toThrow(message)
  })

  test('nothing but a fan-out leads to an aggregator that gathers', async () => {
    const target = ((): string => 'a')()
    const script = blueprint('b', { start: 'go' }, (state) => ({
      go: state.handler((_context, actions) => actions.transitionTo(target), { to: ['a'] }),
      a: state.aggregator({ poster: 't' }, (_context, actions) => actions.transitionTo('done')),
      done: state.end(),
    }))
    await expect(perform(script, { state: 'go' })).rejects.toThrow(/leads to "a" without the branches that it gathers/)
  })

  test('what gathers has to name tasks or blueprints', () => {
    const make = () =>
      blueprint('b', { start: 'a' }, (state) => ({
        // @ts-expect-error a number is neither
        a: state.aggregator({ poster: 1 }, (_context, actions) => actions.transitionTo('done')),
        done: state.end(),
      }))
    expect(make).toThrow('Blueprint "b", state "a": calls aggregator with the branch "poster" without a task')
  })
})

describe('[B-14] a schema for the state history is run', () => {
  const history = z.object({ n: z.number(), deep: z.object({ x: z.string() }) })
  const script = (patch: object): RunnableBlueprint =>
    blueprint('b', { start: 'a', history }, (state) => ({
      a: state.handler((_context, { transitionTo }) => loosely(transitionTo, 'done', patch), {
        to: ['done'],
      }),
      done: state.end({ result: (context) => context.stateHistory.n }),
    }))

  test('what is there has to fit, what is missing may come later', async () => {
    expect((await perform(script({ n: 1 }))).stateHistory).toEqual({ n: 1 })
    expect((await perform(script({ other: 1 }), { stateHistory: { deep: { x: 'y' } } })).stateHistory).toEqual({
      deep: { x: 'y' },
      other: 1,
    })
  })

  test.each<[string, object, Partial<Job>]>([
    ['n: ', { n: 'one' }, {}],
    ['deep.x: ', { deep: {} }, {}],
    ['n: ', {}, { stateHistory: { n: 'one' } }],
    ['n: ', {}, { stateHistory: { n: 'one' }, state: 'done' }],
  ])('%s is refused with its place', async (place, patch, change) => {
    await expect(perform(script(patch), change)).rejects.toThrow(
      `state "${change.state ?? 'a'}": stateHistory does not fit \`history\`: ${place}`,
    )
  })

  test('numbers of many digits are numbers', async () => {
    const large = 2n ** 80n
    expect((await perform(script({ n: large }))).stateHistory['n']).toContain(String(large))
  })
})
