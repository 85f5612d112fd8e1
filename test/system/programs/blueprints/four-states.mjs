import { blueprint } from '@impresario/core'

/** Four states with a fan-out of three: what the kill tests run. */
export const fourStates = blueprint('four_states', { start: 'prepare' }, (state) => ({
  prepare: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'double', params: context.initialData, transitions: { success: 'split' } }),
  ),
  split: state.handler((context, actions) =>
    actions.dispatchParallel(
      [1, 2, 3].map((part) => ({ type: 'part', params: { value: context.stateHistory.value, part } })),
      { into: 'join' },
    ),
  ),
  join: state.aggregator((context, actions) => {
    const parts = Object.values(context.aggregationResults)
    const sum = parts.reduce((total, { data }) => total + data.value, 0)
    return actions.transitionTo('done', { sum, parts: parts.length })
  }),
  done: state.end(),
}))
