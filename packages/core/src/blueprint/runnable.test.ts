/* oxlint-disable typescript/no-unsafe-assignment, typescript/no-unsafe-member-access -- a state history without a schema is `any` by design */
import { contract, eventType, LIMITS } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Job } from '../job/job.ts'
import type { RunnableBlueprint, TurnOutput } from './blueprint.ts'
import { blueprint } from './define.ts'
import { createDictionaryStore } from './dictionary-store.ts'

const job: Job = {
  id: 'j1',
  blueprint: 'b',
  blueprintVersion: 1,
  client: { id: 'c1', plan: 'gold', params: { region: 'eu' } },
  status: 'running',
  state: 'a',
  visit: 1,
  failures: 0,
  initialData: { quality: 'low', list: [1] },
  stateHistory: { kept: { x: 1 } },
  aggregationResults: { 0: { status: 'success', data: { n: 1 } } },
  branches: {},
  priority: 0,
  tracing: { traceparent: 't' },
  depth: 0,
  trail: [],
  createdAt: 0,
  updatedAt: 0,
}
const { signal } = new AbortController()
const run = async (script: RunnableBlueprint, change: Partial<Job> = {}): Promise<TurnOutput> =>
  script.perform({ job: { ...job, ...change }, signal })

describe('[B-01] the context', () => {
  test('[A-02] holds what the handler needs to know, without results outside of aggregators', async () => {
    let seen: object = {}
    const script = blueprint('b', { start: 'a', dataStores: { names: new Map([['k', 'v']]) } }, (state) => ({
      a: state.handler((context, actions) => {
        const { eventOf: _eventOf, ...known } = context
        seen = { ...known, signal: context.signal, stored: context.dataStores.names.get('k') }
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    await run(script)
    expect(seen).toEqual({
      jobId: 'j1',
      currentState: 'a',
      initialData: job.initialData,
      stateHistory: job.stateHistory,
      client: { id: 'c1', plan: 'gold', params: { region: 'eu' } },
      dataStores: { names: new Map([['k', 'v']]) },
      tracingContext: { traceparent: 't' },
      tracing: { traceparent: 't' },
      signal,
      files: expect.anything() as unknown,
      log: expect.anything() as unknown,
      resultOf: expect.any(Function),
      outcomeOf: expect.any(Function),
      written: expect.any(Function),
      stored: 'v',
    })
  })

  test('[J-04] hands on the files of its job, and refuses in words where nobody keeps any', async () => {
    const seen: unknown[] = []
    const reader = blueprint('reader', { start: 'a' }, (state) => ({
      a: state.handler(async (context, actions) => {
        const { files } = context
        const writes = [files.upload('x'), files.writeJson('x', 1)]
        const calls = [files.download('x'), files.readJson('x'), files.list(), ...writes]
        for (const call of await Promise.allSettled(calls)) {
          seen.push(call.status === 'rejected' ? String(call.reason) : call.value)
        }
        return actions.transitionTo('b')
      }),
      b: state.end(),
    }))
    await reader.perform({ job, signal })
    expect(new Set(seen)).toEqual(new Set(['ImpresarioError: No store of files is configured.']))
    seen.length = 0
    const answer = async (): Promise<never> => 'kept' as never
    const files = { download: answer, upload: answer, readJson: answer, writeJson: answer, list: answer }
    await reader.perform({ job, signal, files })
    expect(seen).toEqual(['kept', 'kept', 'kept', 'kept', 'kept'])
  })

  test('[I-05] hands on the log of its job, and drops lines where nobody reads them', async () => {
    const seen: string[] = []
    const writer = blueprint('writer', { start: 'a' }, (state) => ({
      a: state.handler((context, actions) => {
        for (const level of ['debug', 'info', 'warn', 'error'] as const) context.log[level](level)
        return actions.transitionTo('b')
      }),
      b: state.end(),
    }))
    await writer.perform({ job, signal })
    expect(seen).toEqual([])
    const write = (message: string) => seen.push(message)
    await writer.perform({ job, signal, log: { debug: write, info: write, warn: write, error: write } })
    expect(seen).toEqual(['debug', 'info', 'warn', 'error'])
  })

  test('[B-10] says why a failure led to this state, as a copy; conditions as text read it too', async () => {
    const failure = {
      code: 'CHILD_FAILED',
      message: 'no light',
      state: 'start',
      attempts: 3,
      task: { id: 't', type: 'render' },
      child: { jobId: 'c', blueprint: 'trailer', status: 'failed' },
    } as const
    const seen: unknown[] = []
    const script = blueprint('b', { start: 'a' }, (state) => ({
      a: state
        .when("context.failure.code == 'CHILD_FAILED' and context.failure.attempts > 2", (context, actions) => {
          seen.push(context.failure)
          return actions.transitionTo('done')
        })
        .otherwise((context, actions) => {
          seen.push(context.failure)
          return actions.transitionTo('a')
        }),
      done: state.end(),
    }))
    expect(await run(script, { failure })).toMatchObject({ action: { to: 'done' } })
    expect(await run(script, { failure: { code: 'REJECTED', message: 'no', state: 'x', attempts: 1 } })).toMatchObject({
      action: { to: 'a' },
    })
    expect(await run(script)).toMatchObject({ action: { to: 'a' } })
    expect(seen).toEqual([failure, { code: 'REJECTED', message: 'no', state: 'x', attempts: 1 }, undefined])
    expect(seen[0]).not.toBe(failure)
  })

  test('[B-12] has the event that led to this state, typed by its declaration', async () => {
    const paid = eventType('order.paid', z.object({ sum: z.number() }))
    const sent = eventType('order.sent', z.object({}))
    const seen: unknown[] = []
    const script = blueprint('b', { start: 'a', events: [paid, sent] }, (state) => ({
      a: state.handler((context, actions) => {
        seen.push(context.event, context.eventOf(paid).sum)
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    const event = { id: 'e', topic: 'order.paid', payload: { sum: 7 }, at: 1 }
    await run(script, { event })
    expect(seen).toEqual([{ id: 'e', topic: 'order.paid', payload: { sum: 7 }, key: undefined }, 7])
    await expect(run(script)).rejects.toThrow('but no event led here')
    await expect(run(script, { event: { ...event, topic: 'order.sent' } })).rejects.toThrow(
      'the event "order.sent" led',
    )
  })

  test('[B-12] what is sent is checked against the declared events', async () => {
    const paid = eventType('order.paid', z.object({ sum: z.number(), note: z.string().default('-') }))
    const script = blueprint('b', { start: 'done', events: [paid] }, (state) => ({ done: state.end() }))
    expect(script.topics).toEqual(['order.paid'])
    expect(await script.validateEvent?.('order.paid', { sum: 1 })).toEqual({ value: { sum: 1, note: '-' } })
    expect(await script.validateEvent?.('order.paid', { sum: 'x' })).toHaveProperty('problems')
    expect(await script.validateEvent?.('other', {})).toEqual({
      problems: ['"b" knows no event "other". It knows order.paid.'],
    })
    const loose = blueprint('b', { start: 'done' }, (state) => ({ done: state.end() }))
    expect(loose).not.toHaveProperty('validateEvent')
    const odd = [{ topic: 'x' }] as never
    expect(() => blueprint('b', { start: 'done', events: odd }, (state) => ({ done: state.end() }))).toThrow(
      'not events',
    )
  })

  test('what a client did not send is empty', async () => {
    let seen: unknown
    const script = blueprint('b', { start: 'a' }, (state) => ({
      a: state.aggregator((context, actions) => {
        // The former name stays good.
        expect(context.tracing).toEqual(context.tracingContext)
        seen = [context.client, context.tracingContext, context.aggregationResults, context.dataStores]
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    const { tracing: _tracing, aggregationResults: _results, ...bare } = job
    await script.perform({ job: { ...bare, client: { id: 'c1' } }, signal })
    expect(seen).toEqual([{ id: 'c1', plan: undefined, params: {} }, {}, {}, {}])
  })

  test('[A-05] an aggregator gets the results of its branches', async () => {
    const script = blueprint('b', { start: 'a' }, (state) => ({
      a: state.aggregator((context, actions) => actions.transitionTo('done', { all: context.aggregationResults })),
      done: state.end(),
    }))
    const { stateHistory } = await run(script)
    expect(stateHistory).toEqual({ kept: { x: 1 }, all: { 0: { status: 'success', data: { n: 1 } } } })
  })

  test('[A-07] data stores are the objects themselves', async () => {
    const counts = createDictionaryStore<number>()
    const script = blueprint('b', { start: 'a', dataStores: { counts } }, (state) => ({
      a: state.handler(async (context, actions) => {
        await context.dataStores.counts.set('runs', ((await context.dataStores.counts.get('runs')) ?? 0) + 1)
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    await run(script)
    await run(script)
    expect(await counts.get('runs')).toBe(2)
  })

  test('what the handler leaves in the state history is kept; the stored job is out of reach', async () => {
    const stored = structuredClone(job)
    const script = blueprint('b', { input: z.object({ list: z.array(z.number()) }), start: 'a' }, (state) => ({
      a: state.handler((context, actions) => {
        context.stateHistory.kept.x = 2
        context.stateHistory.added = [1]
        delete context.stateHistory.gone
        context.initialData.list.push(2)
        return actions.transitionTo('done', { added: [2], patched: true })
      }),
      done: state.end(),
    }))
    const { stateHistory } = await script.perform({ job: stored, signal })
    expect(stateHistory).toEqual({ kept: { x: 2 }, added: [2], patched: true })
    expect(stored).toEqual(job)
  })

  test('a new state history cannot be put in its place unnoticed', async () => {
    const script = blueprint('b', { start: 'a' }, (state) => ({
      a: state.handler((context, actions) => {
        Object.assign(context, { stateHistory: {} })
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    await expect(run(script)).rejects.toThrow(TypeError)
  })

  test('a state history that JSON cannot hold, or that has grown too large, is refused', async () => {
    const leave = (value: unknown) =>
      blueprint('b', { start: 'a' }, (state) => ({
        a: state.handler((context, actions) => {
          context.stateHistory.left = value
          return actions.transitionTo('done')
        }),
        done: state.end(),
      }))
    await expect(run(leave(new Date(0)))).rejects.toThrow(
      /Blueprint "b", state "a": stateHistory\.left is an instance of Date/,
    )
    await expect(run(leave('x'.repeat(LIMITS.contextBytesMax)))).rejects.toThrow(
      /stateHistory has grown to \d+ bytes.*Put large data into files/,
    )
    const kept = { job, signal, offloads: true }
    const { stateHistory } = await leave('x'.repeat(LIMITS.contextBytesMax)).perform(kept)
    expect(stateHistory['left']).toHaveLength(LIMITS.contextBytesMax)
    expect(() => leave('x'.repeat(LIMITS.offloadedHistoryBytesMax)).perform(kept)).toThrow(
      `at most ${LIMITS.offloadedHistoryBytesMax} are allowed`,
    )
  })
})

describe('[A-04] conditional handlers', () => {
  const script = blueprint('b', { input: z.object({ quality: z.string() }), start: 'a' }, (state) => ({
    a: state
      .when("context.initial_data.quality == 'low'", (_context, actions) => actions.transitionTo('low'))
      .when(
        (context) => context.initialData.quality.startsWith('l'),
        (_context, actions) => actions.transitionTo('almost'),
      )
      .otherwise((_context, actions) => actions.transitionTo('other')),
    strict: state
      .when("context.client.plan == 'silver'", (_context, actions) => actions.transitionTo('low'))
      .when('context.state_history.kept.x > 5', (_context, actions) => actions.transitionTo('low')),
    low: state.end(),
    almost: state.end(),
    other: state.end(),
  }))

  test.each([
    ['low', 'low'],
    ['lower', 'almost'],
    ['high', 'other'],
  ])('the first condition that holds decides: %s leads to %s', async (quality, to) => {
    expect((await run(script, { initialData: { quality } })).action).toEqual({ type: 'transition', to })
  })

  test('no condition and no default is a clear error', async () => {
    await expect(run(script, { state: 'strict' })).rejects.toThrow(
      /Blueprint "b", state "strict": none of its 2 conditions holds\. Add \.otherwise/,
    )
  })
})

describe('[A-01] end states', () => {
  const script = blueprint('b', { output: z.object({ n: z.number() }), start: 'done' }, (state) => ({
    plain: state.end(),
    done: state.end({ result: async (context) => ({ n: context.stateHistory.kept.x, extra: 1 }) }),
    wrong: state.end({ result: (context) => ({ n: context.stateHistory.text }) }),
    odd: state.end({ outcome: 'failed', result: () => Symbol('s') }),
    silent: state.end({ outcome: 'cancelled', result: () => undefined }),
  }))

  test('end the job, with their result if they make one', async () => {
    expect(await run(script, { state: 'plain' })).toEqual({ action: { type: 'end' }, stateHistory: job.stateHistory })
    expect((await run(script, { state: 'done' })).action).toEqual({ type: 'end', result: { n: 1 } })
    expect((await run(script, { state: 'silent' })).action).toEqual({ type: 'end' })
    expect((await run(script, { state: 'failed' })).action).toEqual({ type: 'end' })
  })

  test('a result that is not what was promised, or no JSON, is refused', async () => {
    await expect(run(script, { state: 'wrong' })).rejects.toThrow(
      /state "wrong": the result does not fit `output`: n: /,
    )
    await expect(run(script, { state: 'odd' })).rejects.toThrow(/state "odd": The result is a symbol/)
  })

  test('a state that this version does not have is never run', async () => {
    await expect(run(script, { state: 'gone' })).rejects.toThrow(/state "gone": it is not a state of this version/)
  })
})

test('[A-10] the example of the documents runs', async () => {
  const media = contract('media', {
    transcode: {
      input: z.object({ path: z.string(), preset: z.enum(['720p', '1080p']) }),
      output: z.object({ url: z.string() }),
      outcomes: { needs_review: z.object({ reason: z.string() }) },
    },
  })
  const script = blueprint('b', { input: z.object({ quality: z.string() }), start: 'a' }, (state) => ({
    a: state.handler((context, actions) =>
      actions.dispatchTask(media.transcode, {
        params: { path: context.initialData.quality, preset: '1080p' },
        strategy: 'best_value',
        resourceRequirements: { gpu: { vramGb: 8 } },
        transitions: { success: 'done', needs_review: 'failed', failure: 'failed' },
      }),
    ),
    done: state.end(),
  }))
  expect((await run(script)).action).toEqual({
    type: 'task',
    call: {
      kind: 'task',
      type: 'media.transcode',
      params: { path: 'low', preset: '1080p' },
      priority: 0,
      strategy: 'best_value',
      requirements: { gpu: { vramGb: 8 } },
    },
    transitions: { success: 'done', needs_review: 'failed', failure: 'failed' },
  })
})

describe('[A-04] conditions as text are held against the schemas', () => {
  const script = (condition: string, shape: object = {}) =>
    blueprint('b', { start: 'a', ...shape }, (state) => ({
      a: state
        .when(condition, (_context, actions) => actions.transitionTo('done'))
        .otherwise((_context, actions) => actions.transitionTo('done')),
      done: state.end(),
    }))
  const input = z.object({ quality: z.enum(['low', 'high']) })
  const history = z.object({ tries: z.number() })

  test.each([
    "context.initial_data.quality == 'low'",
    'context.state_history.tries > 3 or context.state_history.tries == null',
    "context.state_history.decision.by == 'bob'",
    "context.current_state == 'a' and context.job_id and context.client.plan == 'gold'",
    "context.client.params.region == 'eu' and context.tracing_context.traceparent",
    "context.aggregation_results and context.failure.code == 'TIMEOUT_ERROR'",
  ])('%s is accepted', (condition) => {
    expect(() => script(condition, { input, history })).not.toThrow()
  })

  test.each([
    ["context.initial_data.quality == 'medium'", "'low' or 'high' and 'medium' are never equal"],
    ['context.state_history.trie > 3', 'context.state_history has only decision, tries'],
    ["context.state_history.tries == 'x'", "a number or null and 'x' are never equal"],
    ["context.current_state == 'b'", "'a' and 'b' are never equal"],
    ["context.client.plam == 'gold'", 'context.client has only id, plan, params'],
    ['context.tracing_context.traceparent > 3', 'a text or null and 3 have no order'],
  ])('%s is refused with its place and the fix', (condition, problem) => {
    const make = () => script(condition, { input, history })
    expect(make).toThrow(`Blueprint "b", state "a": the condition "${condition}" is wrong: `)
    expect(make).toThrow(problem)
  })

  test('what the schemas do not tell passes', () => {
    const silent = { '~standard': { version: 1, vendor: 'v', validate: (value: unknown) => ({ value }) } }
    const refuses = () => {
      throw new Error('There is none.')
    }
    const unable = { '~standard': { ...silent['~standard'], jsonSchema: { output: refuses } } }
    for (const schema of [undefined, silent, unable, z.any(), z.date()]) {
      expect(() =>
        script("context.initial_data.x == 'y' and context.state_history.z < 3", { input: schema, history: schema }),
      ).not.toThrow()
    }
  })
})
