/* oxlint-disable typescript/no-unsafe-call, typescript/no-unsafe-member-access -- what does not compile has no type */
/**
 * [B-14] What the compiler knows of results: those of earlier states, and those of named branches. Never run.
 * Each `@ts-expect-error` stands on the line where the user would see the error.
 */
import { contract } from '@impresario/protocol'
import type { Data, TaskError } from '@impresario/protocol'
import { z } from 'zod'
import { child } from './actions.ts'
import type { ActionToken } from './actions.ts'
import { blueprint } from './define.ts'
import type { OutcomeOf } from './outcome.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function assert<T extends true>(): T | undefined {
  return undefined
}

const media = contract('media', {
  transcode: {
    input: z.object({ path: z.string() }),
    output: z.object({ url: z.string(), seconds: z.number() }),
    outcomes: { needs_review: z.object({ reason: z.string() }) },
  },
  thumbnail: { input: z.object({ at: z.number() }), output: z.object({ image: z.string() }) },
})

const page = blueprint(
  'page',
  { input: z.object({ title: z.string() }), output: z.object({ link: z.string() }), start: 'done' },
  (state) => ({ done: state.end({ result: (context) => ({ link: context.initialData.title }) }) }),
)

// ── Results of earlier states ────────────────────────────────────────────────

blueprint('earlier', { output: z.object({ url: z.string(), link: z.string() }), start: 'transcode' }, (state) => ({
  transcode: state.handler((_context, actions) =>
    actions.dispatchTask(media.transcode, {
      params: { path: 'p' },
      transitions: { success: 'publish', needs_review: 'review', failure: 'judge' },
    }),
  ),
  review: state.handler((context, actions) => {
    assert<Equal<ReviewReason, string>>()
    return actions.awaitHumanApproval({
      message: context.resultOf(media.transcode, { status: 'needs_review' }).reason,
      transitions: { yes: 'publish', no: 'failed' },
    })
  }),
  judge: state.handler((context, actions) => {
    const outcome = context.outcomeOf(media.transcode)
    assert<Equal<typeof outcome, OutcomeOf<typeof media.transcode> | undefined>>()
    if (outcome?.status === 'success') assert<Equal<typeof outcome.data, { url: string; seconds: number }>>()
    if (outcome?.status === 'needs_review') assert<Equal<typeof outcome.data, { reason: string }>>()
    if (outcome?.status === 'failure') assert<Equal<typeof outcome.error, TaskError>>()
    return actions.transitionTo('failed')
  }),
  publish: state
    .when(
      (context) => context.resultOf(media.transcode).seconds > 60,
      (_context, actions) => actions.transitionTo('failed'),
    )
    .otherwise((context, actions) =>
      actions.runBlueprint(page, {
        initialData: { title: context.resultOf(media.transcode).url },
        transitions: { success: 'done' },
      }),
    ),
  done: state.end({
    result: ({ resultOf }) => ({
      url: resultOf(media.transcode, { from: 'transcode' }).url,
      link: resultOf(page).link,
    }),
  }),
}))
type ReviewReason = Extract<OutcomeOf<typeof media.transcode>, { status: 'needs_review' }>['data']['reason']

blueprint('by_name', { start: 'a' }, (state) => ({
  a: state.handler((context, actions) => {
    const loose = context.resultOf('render')
    assert<Equal<typeof loose, Data | undefined>>()
    const ended: string | undefined = context.outcomeOf('render')?.status
    return actions.transitionTo('done', { ended })
  }),
  done: state.end(),
}))

blueprint('wrong_results', { history: z.object({ n: z.number() }), start: 'a' }, (state) => ({
  a: state.handler((context, actions) => {
    // @ts-expect-error the contract's output has no such field
    context.resultOf(media.transcode).seconds.toUpperCase()
    // @ts-expect-error the contract has no such outcome
    context.resultOf(media.transcode, { status: 'needs_revue' })
    // @ts-expect-error a contract without outcomes has none
    context.resultOf(media.thumbnail, { status: 'needs_review' })
    // @ts-expect-error the child's result has no such field
    context.resultOf(page).title
    // @ts-expect-error a failure has no typed data
    context.outcomeOf(media.thumbnail)?.data.image
    // @ts-expect-error there may be none
    context.outcomeOf(page).status
    // @ts-expect-error the history has no such key
    context.written('m')
    // @ts-expect-error the key may not have been written yet
    context.stateHistory.n.toFixed(0)
    // @ts-expect-error only aggregators that say what they gather have results by name
    context.results.poster
    return actions.transitionTo('done', context.written('n'))
  }),
  done: state.end(),
}))

// ── Named branches ───────────────────────────────────────────────────────────

blueprint('named', { output: z.array(z.string()), start: 'spread' }, (state) => ({
  spread: state.handler((_context, actions) =>
    actions.dispatchParallel(
      {
        poster: media.thumbnail({ at: 1 }, { attemptsMax: 2 }),
        video: media.transcode({ path: 'p' }),
        stills: [2, 3].map((at) => media.thumbnail({ at })),
        page: child(page, { title: 't' }),
        other: child('other', {}),
        any: { type: 'any', params: { free: true } },
        others: [{ type: 'any' }, { type: 'any' }],
      },
      { into: 'meet' },
    ),
  ),
  meet: state.aggregator(
    {
      poster: media.thumbnail,
      video: media.transcode,
      stills: [media.thumbnail],
      page,
      other: 'other',
      any: 'any',
      others: ['any'],
    },
    ({ results, aggregationResults }, actions) => {
      const { poster, video, stills, page: made, any, others } = results
      assert<Equal<typeof poster, OutcomeOf<typeof media.thumbnail>>>()
      assert<Equal<typeof stills, readonly OutcomeOf<typeof media.thumbnail>[]>>()
      if (video.status === 'needs_review') assert<Equal<typeof video.data, { reason: string }>>()
      if (made.status === 'success') assert<Equal<typeof made.data, { link: string }>>()
      const loose: readonly (Data | undefined)[] = [any.data, ...others.map(({ data }) => data)]
      const images = stills.filter((still) => still.status === 'success').map(({ data }) => data.image)
      const ids = Object.keys(aggregationResults)
      return actions.transitionTo('done', { images, ids, loose })
    },
  ),
  done: state.end(),
}))

blueprint('named_but_not_gathered', { start: 'spread' }, (state) => ({
  spread: state.handler((_context, actions) =>
    actions.dispatchParallel({ poster: media.thumbnail({ at: 1 }) }, { into: 'meet' }),
  ),
  meet: state.aggregator((context, actions) => {
    const names = Object.values(context.aggregationResults).map(({ as }) => as)
    return actions.transitionTo('done', { names })
  }),
  done: state.end(),
}))

declare function goOn(): ActionToken
declare function goThere(): ActionToken<'meet'>
blueprint('declared', { start: 'spread' }, (state) => ({
  spread: state.handler(() => goOn(), { to: ['meet', 'there'] }),
  there: state.handler(() => goThere()),
  meet: state.aggregator({ poster: media.thumbnail }, (_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

blueprint('wrong_branches', { start: 'missing' }, (state) => ({
  // @ts-expect-error the branch "stills" is missing
  missing: state.handler((_context, actions) =>
    actions.dispatchParallel({ poster: media.thumbnail({ at: 1 }) }, { into: 'meet' }),
  ),
  // @ts-expect-error nothing gathers "banner"
  invented: state.handler((_context, actions) =>
    actions.dispatchParallel(
      { poster: media.thumbnail({ at: 1 }), stills: [], banner: media.thumbnail({ at: 2 }) },
      { into: 'meet' },
    ),
  ),
  // @ts-expect-error "poster" has to be a thumbnail
  swapped: state.handler((_context, actions) =>
    actions.dispatchParallel({ poster: media.transcode({ path: 'p' }), stills: [] }, { into: 'meet' }),
  ),
  // @ts-expect-error "poster" has to be a thumbnail
  child: state.handler((_context, actions) =>
    actions.dispatchParallel({ poster: child(page, { title: 't' }), stills: [] }, { into: 'meet' }),
  ),
  // @ts-expect-error "poster" is one branch
  many: state.handler((_context, actions) =>
    actions.dispatchParallel({ poster: [media.thumbnail({ at: 1 })], stills: [] }, { into: 'meet' }),
  ),
  // @ts-expect-error "stills" is a list of branches
  one: state.handler((_context, actions) =>
    actions.dispatchParallel(
      { poster: media.thumbnail({ at: 1 }), stills: media.thumbnail({ at: 1 }) },
      { into: 'meet' },
    ),
  ),
  // @ts-expect-error the branches have no names
  unnamed: state.handler((_context, actions) =>
    actions.dispatchParallel([media.thumbnail({ at: 1 })], { into: 'meet' }),
  ),
  // @ts-expect-error nothing was sent out
  plain: state.handler((_context, actions) => actions.transitionTo('meet')),
  // @ts-expect-error tasks of their own have no names
  tasks: state.handler((_context, actions) => [
    actions.dispatchTask(media.thumbnail, { params: { at: 1 }, transitions: { success: 'meet' } }),
  ]),
  // @ts-expect-error one of two ways sends the wrong branches
  sometimes: state
    .when('context.job_id', (_context, actions) =>
      actions.dispatchParallel({ poster: media.thumbnail({ at: 1 }), stills: [] }, { into: 'meet' }),
    )
    .otherwise((_context, actions) =>
      actions.dispatchParallel({ poster: media.thumbnail({ at: 1 }) }, { into: 'meet' }),
    ),
  meet: state.aggregator({ poster: media.thumbnail, stills: [media.thumbnail] }, ({ results }, actions) => {
    // @ts-expect-error it gathers no such branch
    results.banner
    // @ts-expect-error the branch may have failed
    results.poster.data.image
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))
