import { blueprint } from '@impresario/core'

/** Asks a person; the server is killed between the question and the answer. */
export const ask = blueprint('ask', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Deploy?', transitions: { approved: 'done', rejected: 'failed' } }),
  ),
  done: state.end({ result: () => ({ deployed: true }) }),
  failed: state.end({ outcome: 'failed' }),
}))
