import { blueprint } from '@impresario/core'

/** Waits, so that its files can come and go. */
export const patient = blueprint('patient', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Are the files there?', transitions: { approved: 'done' } }),
  ),
  done: state.end(),
}))
