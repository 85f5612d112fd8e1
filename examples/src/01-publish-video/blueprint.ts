import { blueprint } from 'impresario'
import { z } from 'zod'
import { media } from './contract.ts'

const FRAMES_PER_SCENE = 8

/** A part of the work that other blueprints may want too, so it is a blueprint of its own. */
export const catalogueVideo = blueprint(
  'catalogue_video',
  {
    input: z.object({ title: z.string(), video: z.string() }),
    output: z.object({ sha256: z.string(), page: z.string() }),
    start: 'fingerprint',
  },
  (state) => ({
    fingerprint: state.handler((context, actions) =>
      actions.dispatchTask(media.fingerprint, {
        params: { file: context.initialData.video },
        transitions: { success: 'page' },
      }),
    ),
    // What a task gave is typed by its contract, in every state that comes after it.
    page: state.handler((context, actions) =>
      actions.dispatchTask(media.page, {
        params: { ...context.initialData, sha256: context.resultOf(media.fingerprint).sha256 },
        transitions: { success: 'catalogued' },
      }),
    ),
    catalogued: state.end({
      result: ({ resultOf }) => ({ ...resultOf(media.fingerprint), ...resultOf(media.page) }),
    }),
  }),
)

/** Shoots scenes side by side, joins them, asks a person, and puts the video on a page. */
export const publishVideo = blueprint(
  'publish_video',
  {
    input: z.object({
      title: z.string(),
      quality: z.enum(['low', 'high']).default('low'),
      scenes: z.number().int().min(1).max(12).default(4),
    }),
    // What the states of one job write down for each other.
    history: z.object({ width: z.number(), height: z.number(), scenes: z.array(z.string()) }),
    output: z.object({ video: z.string(), frames: z.number(), sha256: z.string(), page: z.string() }),
    start: 'plan',
  },
  (state) => ({
    // The first condition that holds decides.
    plan: state
      .when("context.initial_data.quality == 'low'", (_context, actions) =>
        actions.transitionTo('shoot', { width: 160, height: 90 }),
      )
      .otherwise((_context, actions) => actions.transitionTo('shoot', { width: 480, height: 270 })),

    // A fan-out: one task per scene, spread over all workers.
    shoot: state.handler(({ initialData, written }, actions) => {
      const size = written('width', 'height')
      const scenes = Array.from({ length: initialData.scenes }, (_, scene) =>
        media.shoot({ scene, frames: FRAMES_PER_SCENE, ...size }, { strategy: 'least_connections' }),
      )
      return actions.dispatchParallel({ scenes }, { into: 'cut', policy: 'fail_fast' })
    }),

    // Runs once, when every scene is there.
    cut: state.aggregator({ scenes: [media.shoot] }, ({ results }, actions) => {
      const shot = results.scenes.filter((scene) => scene.status === 'success')
      return shot.length < results.scenes.length
        ? actions.transitionTo('rejected')
        : actions.transitionTo('transcode', { scenes: shot.map(({ data }) => data.file) })
    }),

    // Any worker could do it; the cheapest one gets it.
    transcode: state.handler((context, actions) =>
      actions.dispatchTask(media.transcode, {
        params: { ...context.written('scenes'), framesPerSecond: 12 },
        strategy: 'cheapest',
        transitions: { success: 'review', failure: 'rejected' },
      }),
    ),

    // The job now waits for a person: a second or a week, also over restarts.
    review: state.handler((context, actions) =>
      actions.awaitHumanApproval({
        message: `Publish "${context.initialData.title}"? (${context.resultOf(media.transcode).frames} frames)`,
        transitions: { approved: 'catalogue', rejected: 'rejected', expired: 'rejected' },
        expires: '7d',
      }),
    ),

    catalogue: state.handler(({ initialData: { title }, resultOf }, actions) =>
      actions.runBlueprint(catalogueVideo, {
        initialData: { title, video: resultOf(media.transcode).video },
        transitions: { success: 'published', failure: 'rejected' },
      }),
    ),

    published: state.end({
      result: ({ resultOf }) => {
        const { video, frames } = resultOf(media.transcode)
        return { video, frames, ...resultOf(catalogueVideo) }
      },
    }),
    rejected: state.end({ outcome: 'failed' }),
  }),
)
