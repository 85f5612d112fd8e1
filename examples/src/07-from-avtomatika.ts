// The samples of the older documents, in the words of this system. docs/guide/from-avtomatika.md shows them.
//
// Blueprints only: `examples/src/from-avtomatika.test.ts` runs each of them.
import { blueprint, createDictionaryStore } from 'impresario'
import { z } from 'zod'

// A task whose status picks the next state, also a status of the worker's own.
export const generateData = blueprint('generate_data', { start: 'generate' }, (state) => ({
  generate: state.handler((context, actions) =>
    actions.dispatchTask({
      type: 'data_generation',
      params: context.initialData,
      transitions: {
        success: 'awaiting_approval',
        failure: 'data_generation_failed',
        needs_review: 'manual_review_step',
      },
    }),
  ),
  awaiting_approval: state.handler((_context, actions) =>
    actions.awaitHumanApproval({
      message: 'Use this data?',
      transitions: { approved: 'approved', rejected: 'data_generation_failed' },
    }),
  ),
  manual_review_step: state.end(),
  approved: state.end(),
  data_generation_failed: state.end({ outcome: 'failed' }),
}))

// Two tasks at once. Return both: a call without `return` is refused, with what to write instead.
export const parallelWork = blueprint('parallel_work', { start: 'start_parallel_tasks' }, (state) => ({
  start_parallel_tasks: state.handler((_context, actions) => [
    actions.dispatchTask({ type: 'task_a', params: { id: 1 }, transitions: { success: 'aggregate_results' } }),
    actions.dispatchTask({ type: 'task_b', params: { id: 2 }, transitions: { success: 'aggregate_results' } }),
  ]),
  aggregate_results: state.aggregator((context, actions) => {
    // By task id: { status, data, error }. Branches with names have typed results: see dispatchParallel.
    const results = Object.entries(context.aggregationResults)
    const summary = Object.fromEntries(results.map(([taskId, { data }]) => [taskId, data ?? null]))
    return actions.transitionTo('final_step', { summary })
  }),
  final_step: state.end(),
}))

// An object that handlers of a blueprint share: a cache, a connection, a client of another API.
export const withDataStore = blueprint(
  'my_blueprint_with_datastore',
  { start: 'some_state', dataStores: { cache: createDictionaryStore({ initial_key: 'initial_value' }) } },
  (state) => ({
    some_state: state.handler(async (context, actions) => {
      const value = await context.dataStores.cache.get('initial_key')
      return actions.transitionTo('done', { value })
    }),
    done: state.end(),
  }),
)

// Conditions over the context: the first that holds decides, `otherwise` is for the rest.
export const byQuality = blueprint(
  'by_quality',
  { input: z.object({ quality: z.string() }), start: 'choose' },
  (state) => ({
    choose: state
      .when("context.initial_data.quality == 'low'", (_context, actions) => actions.transitionTo('rejected'))
      .when("context.client.plan == 'premium'", (_context, actions) => actions.transitionTo('fast_lane'))
      .otherwise((_context, actions) => actions.transitionTo('queue')),
    fast_lane: state.end(),
    queue: state.end(),
    rejected: state.end({ outcome: 'failed' }),
  }),
)

// Another blueprint as a part of this one. Its result is found under its name.
export const withChild = blueprint('with_child', { start: 'run_it' }, (state) => ({
  run_it: state.handler((_context, actions) =>
    actions.runBlueprint({
      name: 'parallel_work',
      initialData: {},
      transitions: { success: 'done', failure: 'child_failed' },
    }),
  ),
  done: state.end({ result: (context) => context.resultOf('parallel_work') }),
  child_failed: state.end({ outcome: 'failed' }),
}))

// Priorities, strategies, requirements and timeouts of a task.
export const demandingTask = blueprint('demanding_task', { start: 'render' }, (state) => ({
  render: state.handler((_context, actions) =>
    actions.dispatchTask({
      type: 'render',
      priority: 10,
      strategy: 'best_value',
      resourceRequirements: { gpu: { model: 'A100', vramGb: 40 }, models: ['scenes-v2'] },
      maxCost: 0.02,
      dispatchTimeout: '30s',
      resultTimeout: '10m',
      transitions: { success: 'done', timeout: 'too_late' },
    }),
  ),
  done: state.end(),
  too_late: state.end({ outcome: 'failed' }),
}))
