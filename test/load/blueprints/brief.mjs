import { blueprint } from '@impresario/core'

/** Ends at once: what it costs is to be created, decided and kept. */
export const brief = blueprint('brief', { start: 'begin' }, (state) => ({
  begin: state.handler((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))
