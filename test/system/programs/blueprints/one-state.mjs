import { blueprint } from '@impresario/core'

/** One task, and its answer is the job's. */
export const oneState = blueprint('one_state', { start: 'work' }, (state) => ({
  work: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'double', params: context.initialData, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))
