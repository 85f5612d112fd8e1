import { blueprint, child } from '@impresario/core'
import { z } from 'zod'

/*
 * The tools that the conformance suite of the protocol calls, each as a blueprint. Their names and what they answer are given by
 * the suite.
 */

/** A picture of one pixel, and a sound of no length. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

const text = (said: string) => ({ type: 'text', text: said })
const image = { type: 'image', data: PNG, mimeType: 'image/png' }
const embedded = (uri: string, said: string) => ({
  type: 'resource',
  resource: { uri, mimeType: 'text/plain', text: said },
})

/** Ends at once with this content. */
function saying(name: string, content: readonly object[]) {
  return blueprint(name, { start: 'say' }, (state) => ({
    say: state.handler((_context, actions) => actions.transitionTo('said')),
    said: state.end({ result: () => ({ content }) }),
  }))
}

const greet = blueprint('greet', { input: z.object({ name: z.string() }), start: 'say' }, (state) => ({
  say: state.handler((_context, actions) => actions.transitionTo('said')),
  said: state.end({ result: ({ initialData }) => ({ content: [text(`Hello, ${initialData.name}!`)] }) }),
}))

const slowCompute = blueprint(
  'slow_compute',
  { input: z.object({ seconds: z.number().default(1), label: z.string().default('') }), start: 'wait' },
  (state) => ({
    wait: state.handler(({ initialData }, actions) =>
      initialData.seconds === 0
        ? actions.transitionTo('done')
        : actions.sleep(`${initialData.seconds}s`, { to: 'done' }),
    ),
    done: state.end({ result: ({ initialData }) => ({ content: [text(`Computed ${initialData.label}`)] }) }),
  }),
)

const failingJob = blueprint('failing_job', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) => actions.sleep('1s', { to: 'failed' })),
  failed: state.end({ outcome: 'failed' }),
}))

const errorHandling = blueprint('test_error_handling', { start: 'fail' }, (state) => ({
  fail: state.handler((_context, actions) => actions.transitionTo('failed')),
  failed: state.end({ outcome: 'failed' }),
}))

const protocolErrorJob = blueprint('protocol_error_job', { start: 'wait', handlerAttemptsMax: 1 }, (state) => ({
  wait: state.handler((_context, actions) => actions.sleep('1s', { to: 'panic' })),
  panic: state.handler((context, actions) => {
    if (context.jobId !== '') throw new Error('A handler of the conformance suite has panicked.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

const confirmDelete = blueprint(
  'confirm_delete',
  { input: z.object({ filename: z.string().default('file.txt') }), start: 'ask' },
  (state) => ({
    ask: state.handler(({ initialData }, actions) =>
      actions.awaitHumanApproval({
        message: `Delete ${initialData.filename}?`,
        transitions: { confirm: 'deleted', cancel: 'kept' },
      }),
    ),
    deleted: state.end({ result: ({ initialData }) => ({ content: [text(`Deleted ${initialData.filename}`)] }) }),
    kept: state.end({ result: ({ initialData }) => ({ content: [text(`Kept ${initialData.filename}`)] }) }),
  }),
)

const askOne = blueprint('ask_one', { input: z.object({ what: z.string() }), start: 'ask' }, (state) => ({
  ask: state.handler(({ initialData }, actions) =>
    actions.awaitHumanApproval({
      message: `Confirm ${initialData.what}?`,
      transitions: { confirm: 'done', cancel: 'failed' },
    }),
  ),
  done: state.end(),
}))

const multiInput = blueprint('multi_input', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.dispatchParallel([child(askOne, { what: 'the first' }), child(askOne, { what: 'the second' })], {
      into: 'gather',
    }),
  ),
  gather: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end({ result: () => ({ content: [text('Both were confirmed.')] }) }),
}))

export const CONFORMANCE_BLUEPRINTS = [
  saying('test_simple_text', [text('This is a simple text response for testing.')]),
  saying('test_image_content', [image]),
  saying('test_audio_content', [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]),
  saying('test_embedded_resource', [embedded('test://embedded-resource', 'This is an embedded resource content.')]),
  saying('test_multiple_content_types', [
    text('Multiple content types test:'),
    image,
    embedded('test://mixed-content-resource', '{"test":"data","value":123}'),
  ]),
  greet,
  slowCompute,
  failingJob,
  errorHandling,
  protocolErrorJob,
  confirmDelete,
  askOne,
  multiInput,
]
