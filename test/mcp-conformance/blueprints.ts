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

/** A task only: clients that do not know tasks are refused. */
const taskOnly = z.object({}).meta({ 'x-mcp': { requires: ['tasks'] } })

const failingJob = blueprint('failing_job', { input: taskOnly, start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) => actions.sleep('1s', { to: 'failed' })),
  failed: state.end({ outcome: 'failed' }),
}))

/** Writes lines as it goes, which the client of the call is told. */
const withLogging = blueprint('test_tool_with_logging', { start: 'begin' }, (state) => ({
  begin: state.handler((context, actions) => {
    context.log.info('Tool execution started')
    return actions.sleep('50ms', { to: 'process' })
  }),
  process: state.handler((context, actions) => {
    context.log.info('Tool processing data')
    return actions.sleep('50ms', { to: 'finish' })
  }),
  finish: state.handler((context, actions) => {
    context.log.info('Tool execution completed')
    return actions.transitionTo('done')
  }),
  done: state.end({ result: () => ({ content: [text('The tool has written three lines.')] }) }),
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

/** Asks for a name, and goes on as a task. */
const toolWithTask = blueprint(
  'test_tool_with_task',
  {
    input: z
      .object({ name: z.string() })
      .meta({ 'x-mcp': { requires: ['tasks'], ask: [asking('user_name', 'name')] } }),
    start: 'wait',
  },
  (state) => ({
    wait: state.handler((_context, actions) => actions.sleep('1s', { to: 'done' })),
    done: state.end({ result: ({ initialData }) => ({ content: [text(`Hello, ${initialData.name}!`)] }) }),
  }),
)

function asking(key: string, ...fields: readonly string[]) {
  return { key, message: `Please give: ${fields.join(', ')}`, fields }
}

/** Asks for what its forms name, and says what it was told. */
function repeating(name: string, input: z.ZodObject, forms: readonly object[]) {
  return blueprint(name, { input: input.meta({ 'x-mcp': { ask: forms } }), start: 'say' }, (state) => ({
    say: state.handler((_context, actions) => actions.transitionTo('said')),
    said: state.end({ result: ({ initialData }) => ({ content: [text(`state-ok ${JSON.stringify(initialData)}`)] }) }),
  }))
}

const OPTIONS = ['option1', 'option2', 'option3'] as const
const VALUES = ['value1', 'value2', 'value3'].map((value) => ({ const: value, title: `The ${value}` }))
const OPTS = ['opt1', 'opt2', 'opt3'] as const

const defaults = z.object({
  name: z.string().default('John Doe'),
  age: z.int().default(30),
  score: z.number().default(95.5),
  status: z.enum(['active', 'inactive', 'pending']).default('active'),
  verified: z.boolean().default(true),
})

const choices = z.object({
  untitledSingle: z.enum(OPTIONS),
  titledSingle: z.string().meta({ oneOf: VALUES }),
  legacyEnum: z.enum(OPTS).meta({ enumNames: ['Option One', 'Option Two', 'Option Three'] }),
  untitledMulti: z.array(z.enum(OPTIONS)),
  titledMulti: z.array(z.any().meta({ anyOf: VALUES })),
})

const missingCapability = blueprint(
  'test_missing_capability',
  { input: z.object({}).meta({ 'x-mcp': { requires: ['sampling'] } }), start: 'say' },
  (state) => ({
    say: state.handler((_context, actions) => actions.transitionTo('said')),
    said: state.end(),
  }),
)

/** Reports how it stands while a call waits for it. */
const progressing = blueprint('test_tool_with_progress', { start: 'first' }, (state) => ({
  first: state.handler((_context, actions) => actions.sleep('100ms', { to: 'second' })),
  second: state.handler((_context, actions) => actions.sleep('100ms', { to: 'third' })),
  third: state.handler((_context, actions) => actions.sleep('100ms', { to: 'fourth' })),
  fourth: state.handler((_context, actions) => actions.sleep('100ms', { to: 'done' })),
  done: state.end(),
}))

/** Keywords of JSON Schema 2020-12 that have to reach the client as they are. */
const keywords = z.strictObject({ name: z.string().optional(), phone: z.string().optional() }).meta({
  $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: { type: 'string' } } } },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['name'] }] }],
  if: { properties: { name: { const: 'phone' } }, required: ['name'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['name'] },
})

const name = z.object({ name: z.string() })
const confirmed = z.object({ ok: z.boolean() })

export const CONFORMANCE_BLUEPRINTS = [
  toolWithTask,
  progressing,
  repeating('json_schema_2020_12_tool', keywords, []),
  missingCapability,
  saying('test_logging_tool', [text('Nothing was logged.')]),
  repeating('test_streaming_elicitation', name, [asking('user_name', 'name')]),
  repeating('test_input_required_result_elicitation', name, [asking('user_name', 'name')]),
  repeating('test_input_required_result_request_state', confirmed, [asking('confirm', 'ok')]),
  repeating('test_input_required_result_tampered_state', confirmed, [asking('confirm', 'ok')]),
  repeating('test_input_required_result_multi_round', name.extend({ color: z.string() }), [
    asking('step1', 'name'),
    asking('step2', 'color'),
  ]),
  repeating('test_elicitation', z.object({ message: z.string(), username: z.string(), email: z.string() }), [
    asking('user', 'username', 'email'),
  ]),
  repeating('test_elicitation_sep1034_defaults', defaults, [asking('defaults', ...Object.keys(defaults.shape))]),
  repeating('test_elicitation_sep1330_enums', choices, [asking('choices', ...Object.keys(choices.shape))]),
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
  withLogging,
  errorHandling,
  protocolErrorJob,
  confirmDelete,
  askOne,
  multiInput,
]
