/* oxlint-disable typescript/no-unsafe-assignment, typescript/no-unsafe-call, typescript/no-unsafe-member-access -- a state history without a schema is `any` by design */
/**
 * What the compiler must accept and refuse. Checked with the rest of the types; never run.
 * Each `@ts-expect-error` stands on the line where the user would see the error.
 */
import { contract } from '@impresario/protocol'
import { z } from 'zod'
import { child } from './actions.ts'
import { blueprint } from './define.ts'
import type { Blueprint } from './define.ts'
import { createDictionaryStore } from './dictionary-store.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function assert<T extends true>(): T | undefined {
  return undefined
}

const media = contract('media', {
  transcode: {
    input: z.object({ path: z.string(), preset: z.enum(['720p', '1080p']) }),
    output: z.object({ url: z.string(), seconds: z.number() }),
    outcomes: { needs_review: z.object({ reason: z.string() }) },
  },
  thumbnail: { input: z.object({ url: z.string(), at: z.number() }), output: z.object({ image: z.string() }) },
})
const cache = createDictionaryStore<number>()

// ── The example of the architecture, as it stands there ──────────────────────

export const publishVideo = blueprint(
  'publish_video',
  {
    input: z.object({ path: z.string(), quality: z.enum(['low', 'high']) }),
    output: z.object({ images: z.number() }),
    start: 'transcode',
    dataStores: { cache },
  },
  (state) => ({
    transcode: state.handler((context, actions) =>
      actions.dispatchTask(media.transcode, {
        params: { path: context.initialData.path, preset: '1080p' },
        strategy: 'best_value',
        resourceRequirements: { gpu: { vramGb: 8 } },
        transitions: { success: 'cut', needs_review: 'review', failure: 'rejected' },
      }),
    ),
    cut: state.handler((context, actions) =>
      actions.dispatchParallel(
        [0, 10, 20].map((at) => media.thumbnail({ url: context.stateHistory.url, at })),
        { into: 'collect' },
      ),
    ),
    collect: state.aggregator((context, actions) =>
      actions.transitionTo('published', { images: context.aggregationResults }),
    ),
    review: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: 'Publish it?', transitions: { approved: 'cut', rejected: 'rejected' } }),
    ),
    published: state.end({ result: (context) => ({ images: context.stateHistory.images.length }) }),
    rejected: state.end({ outcome: 'failed', result: () => 'any reason' }),
  }),
)
assert<
  Equal<
    typeof publishVideo,
    Blueprint<
      'publish_video',
      { path: string; quality: 'low' | 'high' },
      { images: number },
      'transcode' | 'cut' | 'collect' | 'review' | 'published' | 'rejected'
    >
  >
>()

// ── Inference ────────────────────────────────────────────────────────────────

blueprint(
  'inference',
  {
    input: z.object({ path: z.string(), size: z.number().default(1) }),
    history: z.object({ url: z.string(), tries: z.number() }),
    start: 'a',
    dataStores: { cache, names: new Map<string, string>() },
    version: 2,
    executionTimeout: '2h',
    migrate: (job) => (job.blueprintVersion === 1 ? { state: 'a', stateHistory: job.stateHistory } : undefined),
  },
  (state) => ({
    a: state
      .when("context.initial_data.path == 'x'", (_context, { transitionTo }) => transitionTo('b', { tries: 1 }))
      .when(
        (context) => context.initialData.size > 1,
        async (_context, actions) => actions.transitionTo('c'),
      )
      .otherwise((context, actions) =>
        (context.stateHistory.tries ?? 0) > 3 ? actions.transitionTo('done') : actions.transitionTo('failed'),
      ),
    b: state.handler(async (context, actions) => {
      assert<Equal<typeof context.initialData, { path: string; size: number }>>()
      assert<Equal<typeof context.stateHistory, Partial<{ url: string; tries: number }>>>()
      assert<Equal<ReturnType<typeof context.written<'url'>>, Required<Pick<Partial<{ url: string }>, 'url'>>>>()
      const known: number | undefined = await context.dataStores.cache.get('k')
      const name: string | undefined = context.dataStores.names.get('k')
      context.stateHistory.tries = (known ?? 0) + (name ?? '').length
      return actions.dispatchTask({ type: 'any', params: { free: [1] }, transitions: { success: 'c', odd: 'done' } })
    }),
    c: state.handler((context, actions) => [
      actions.dispatchTask(media.thumbnail, {
        params: { ...context.written('url'), at: 1 },
        transitions: { success: 'd' },
      }),
      actions.dispatchTask({ type: 'any', transitions: { success: 'd' } }),
    ]),
    d: state.aggregator((context, actions) => {
      const statuses: string[] = Object.values(context.aggregationResults).map((result) => result.status)
      return actions.runBlueprint(publishVideo, {
        initialData: { path: statuses.join(','), quality: 'low' },
        transitions: { success: 'e', failure: 'failed' },
      })
    }),
    e: state.handler((_context, actions) =>
      actions.dispatchParallel(
        [
          child(publishVideo, { path: 'p', quality: 'high' }),
          child('by_name', { any: 1 }),
          { type: 'any', priority: 3 },
        ],
        { into: 'd', policy: 'fail_fast' },
      ),
    ),
    f: state.handler((_context, actions) => actions.transitionTo(String(1)), { to: ['e', 'done'] }),
    g: state.handler((_context, actions) => actions.runBlueprint({ name: 'x', transitions: { success: 'done' } })),
    h: state.handler((_context, actions) =>
      actions.runBlueprint({ name: 'x' }, { initialData: { any: 1 }, transitions: { success: 'done' } }),
    ),
    done: state.end(),
  }),
)

// ── Unknown targets ──────────────────────────────────────────────────────────

blueprint('wrong_transition', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.handler((_context, actions) => actions.transitionTo('nowhere')),
  done: state.end(),
}))

blueprint('wrong_branch', { start: 'a' }, (state) => ({
  // @ts-expect-error one of two ways leads nowhere
  a: state.handler((context, actions) =>
    context.jobId === '' ? actions.transitionTo('done') : actions.transitionTo('nowhere'),
  ),
  done: state.end(),
}))

blueprint('wrong_task_transition', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.handler((_context, actions) =>
    actions.dispatchTask(media.thumbnail, {
      params: { url: 'u', at: 1 },
      transitions: { success: 'done', failure: 'nowhere' },
    }),
  ),
  done: state.end(),
}))

blueprint('wrong_loose_transition', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.handler((_context, actions) => actions.dispatchTask({ type: 't', transitions: { success: 'nowhere' } })),
  done: state.end(),
}))

blueprint('wrong_event', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 't', transitions: { success: 'done' }, eventTransitions: { found: 'nowhere' } }),
  ),
  done: state.end(),
}))

blueprint('wrong_event_by_contract', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.handler((_context, actions) =>
    actions.dispatchTask(media.thumbnail, {
      params: { url: 'u', at: 1 },
      transitions: { success: 'done' },
      eventTransitions: { found: 'nowhere' },
    }),
  ),
  done: state.end(),
}))

blueprint('wrong_expiry', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'm', transitions: { yes: 'done', expired: 'nowhere' }, remindEvery: '1d' }),
  ),
  done: state.end(),
}))

blueprint('wrong_decision', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'm', transitions: { approved: 'done', rejected: 'nowhere' } }),
  ),
  done: state.end(),
}))

blueprint('wrong_into', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.handler((_context, actions) => actions.dispatchParallel([{ type: 't' }], { into: 'nowhere' })),
  done: state.end(),
}))

blueprint('wrong_condition', { start: 'a' }, (state) => ({
  // @ts-expect-error the conditional way leads nowhere
  a: state
    .when('true', (_context, actions) => actions.transitionTo('nowhere'))
    .otherwise((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

blueprint('wrong_aggregator', { start: 'a' }, (state) => ({
  // @ts-expect-error "nowhere" is not a state
  a: state.aggregator((_context, actions) => actions.transitionTo('nowhere')),
  done: state.end(),
}))

blueprint('wrong_declaration', { start: 'a' }, (state) => ({
  // @ts-expect-error a declared target is not a state
  a: state.handler((_context, actions) => actions.transitionTo('done'), { to: ['nowhere'] }),
  done: state.end(),
}))

blueprint('undeclared', { start: 'a' }, (state) => ({
  // @ts-expect-error a target that is no literal has to be declared
  a: state.handler((context, actions) => actions.transitionTo(context.jobId)),
  done: state.end(),
}))

// ── The start ────────────────────────────────────────────────────────────────

blueprint(
  'wrong_start',
  {
    // @ts-expect-error "begin" is not a state
    start: 'begin',
  },
  (state) => ({ done: state.end() }),
)

// ── Outcomes ─────────────────────────────────────────────────────────────────

blueprint('missing_success', { start: 'a' }, (state) => ({
  a: state.handler((_context, actions) =>
    actions.dispatchTask(media.thumbnail, {
      params: { url: 'u', at: 1 },
      // @ts-expect-error nothing is said for success
      transitions: { failure: 'done' },
    }),
  ),
  done: state.end(),
}))

blueprint('missing_outcome', { start: 'a' }, (state) => ({
  a: state.handler((_context, actions) =>
    actions.dispatchTask(media.transcode, {
      params: { path: 'p', preset: '720p' },
      // @ts-expect-error nothing is said for needs_review
      transitions: { success: 'done' },
    }),
  ),
  done: state.end(),
}))

blueprint('invented_outcome', { start: 'a' }, (state) => ({
  a: state.handler((_context, actions) =>
    actions.dispatchTask(media.thumbnail, {
      params: { url: 'u', at: 1 },
      // @ts-expect-error the contract has no such outcome
      transitions: { success: 'done', needs_revue: 'done' },
    }),
  ),
  done: state.end(),
}))

// ── Data ─────────────────────────────────────────────────────────────────────

blueprint('wrong_params', { start: 'a' }, (state) => ({
  a: state.handler((_context, actions) =>
    actions.dispatchTask(media.transcode, {
      // @ts-expect-error that preset does not exist
      params: { path: 'p', preset: '4k' },
      transitions: { success: 'done', needs_review: 'done' },
    }),
  ),
  b: state.handler((_context, actions) =>
    // @ts-expect-error `at` is missing
    actions.dispatchParallel([media.thumbnail({ url: 'u' })], { into: 'c' }),
  ),
  c: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

blueprint('wrong_store', { start: 'a', dataStores: { cache } }, (state) => ({
  a: state.handler((context, actions) => {
    // @ts-expect-error that store is not registered
    context.dataStores.cash.get('k')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

blueprint('wrong_child', { start: 'a' }, (state) => ({
  a: state.handler((_context, actions) =>
    actions.runBlueprint(publishVideo, {
      // @ts-expect-error the child's input has no such quality
      initialData: { path: 'p', quality: 'medium' },
      transitions: { success: 'done' },
    }),
  ),
  b: state.handler((_context, actions) =>
    // @ts-expect-error the child's input has no such quality
    actions.dispatchParallel([child(publishVideo, { path: 'p', quality: 'medium' })], { into: 'c' }),
  ),
  c: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

blueprint('wrong_use', { input: z.object({ path: z.string() }), start: 'a' }, (state) => ({
  a: state.handler((context, actions) => {
    // @ts-expect-error the input has no such field
    const { paht } = context.initialData
    // @ts-expect-error only aggregators see results
    const { aggregationResults } = context
    return actions.transitionTo('done', { paht, aggregationResults })
  }),
  // @ts-expect-error a handler has to return its action
  b: state.handler((_context, actions) => {
    actions.transitionTo('done')
  }),
  done: state.end(),
}))

blueprint(
  'wrong_history',
  { history: z.object({ url: z.string() }), output: z.object({ n: z.number() }), start: 'a' },
  (state) => ({
    a: state.handler((_context, actions) =>
      // @ts-expect-error the history has another type there
      actions.transitionTo('done', { url: 1 }),
    ),
    done: state.end({
      // @ts-expect-error the output has another type there
      result: () => ({ n: 'one' }),
    }),
  }),
)
