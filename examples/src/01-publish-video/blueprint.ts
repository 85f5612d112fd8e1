import { blueprint } from 'impresario'
import { z } from 'zod'
import { media } from './contract.ts'

const FRAMES_PER_SCENE = 8

/** A part of the work that other blueprints may want too, so it is a blueprint of its own. */
export const catalogueVideo = blueprint(
  'catalogue_video',
  {
    input: z.object({ title: z.string(), video: z.string() }),
    history: z.object({ sha256: z.string(), page: z.string() }),
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
    page: state.handler((context, actions) =>
      actions.dispatchTask(media.page, {
        params: { ...context.initialData, sha256: context.stateHistory.sha256 },
        transitions: { success: 'catalogued' },
      }),
    ),
    catalogued: state.end({ result: ({ stateHistory: { sha256, page } }) => ({ sha256, page }) }),
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
    // What the states of one job write down for each other; results of tasks and children arrive here too.
    history: z.object({
      width: z.number(),
      height: z.number(),
      scenes: z.array(z.string()),
      video: z.string(),
      frames: z.number(),
      bytes: z.number(),
      catalogue_video: z.object({ sha256: z.string(), page: z.string() }),
    }),
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
    shoot: state.handler(({ initialData, stateHistory: { width, height } }, actions) =>
      actions.dispatchParallel(
        Array.from({ length: initialData.scenes }, (_, scene) =>
          media.shoot({ scene, frames: FRAMES_PER_SCENE, width, height }, { strategy: 'least_connections' }),
        ),
        { into: 'cut', policy: 'fail_fast' },
      ),
    ),

    // Runs once, when every scene is there.
    cut: state.aggregator((context, actions) => {
      const scenes = Object.values(context.aggregationResults).map(({ status, data }) =>
        status === 'success' ? media.shoot.output.parse(data).file : undefined,
      )
      return scenes.includes(undefined)
        ? actions.transitionTo('rejected')
        : actions.transitionTo('transcode', { scenes: scenes.filter((file) => file !== undefined) })
    }),

    // Any worker could do it; the cheapest one gets it.
    transcode: state.handler((context, actions) =>
      actions.dispatchTask(media.transcode, {
        params: { scenes: context.stateHistory.scenes, framesPerSecond: 12 },
        strategy: 'cheapest',
        transitions: { success: 'review', failure: 'rejected' },
      }),
    ),

    // The job now waits for a person: a second or a week, also over restarts.
    review: state.handler((context, actions) =>
      actions.awaitHumanApproval({
        message: `Publish "${context.initialData.title}"? (${context.stateHistory.frames} frames)`,
        transitions: { approved: 'catalogue', rejected: 'rejected', expired: 'rejected' },
        expires: '7d',
      }),
    ),

    catalogue: state.handler(({ initialData: { title }, stateHistory: { video } }, actions) =>
      actions.runBlueprint(catalogueVideo, {
        initialData: { title, video },
        transitions: { success: 'published', failure: 'rejected' },
      }),
    ),

    published: state.end({
      result: ({ stateHistory: { video, frames, catalogue_video: catalogue } }) => ({ video, frames, ...catalogue }),
    }),
    rejected: state.end({ outcome: 'failed' }),
  }),
)
