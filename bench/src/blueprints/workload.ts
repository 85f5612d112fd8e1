import { blueprint } from '@impresario/core'

/** One task, nothing else. */
export const noop = blueprint('noop', { start: 'work' }, (state) => ({
  work: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'noop', params: context.initialData, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

/** A, then B and C side by side, then D. */
export const diamond = blueprint('diamond', { start: 'a' }, (state) => ({
  a: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'noop', params: context.initialData, transitions: { success: 'split' } }),
  ),
  split: state.handler((context, actions) =>
    actions.dispatchParallel(
      [
        { type: 'noop', params: context.initialData },
        { type: 'noop', params: context.initialData },
      ],
      { into: 'join' },
    ),
  ),
  join: state.aggregator((_context, actions) => actions.transitionTo('d')),
  d: state.handler((context, actions) =>
    actions.dispatchTask({
      type: 'noop',
      params: { ...context.initialData, last: true },
      transitions: { success: 'done' },
    }),
  ),
  done: state.end(),
}))
