import { expect, test } from 'vitest'
import { LIMITS } from '@impresario/protocol'
import type { Effect } from './effect.ts'
import { outboxMessage, pendingDelivery } from './outbox.ts'
import {
  aTask,
  aChild,
  approval,
  cancels,
  childEnds,
  chooses,
  expires,
  failsWith,
  falls,
  fanOut,
  goTo,
  happens,
  open,
  play,
  reports,
  retries,
  says,
  task,
  throws,
} from './samples.ts'
import type { Cue, Scene } from './samples.ts'

const webhookUrl = 'https://hear.example/me'
const heard = { webhookUrl, metadata: { order: 7 } }
type Webhook = Extract<Effect, { type: 'webhook' }>

function webhooks({ effects }: Scene): readonly Webhook[] {
  return effects.filter((effect) => effect.type === 'webhook')
}

const sent = [chooses(task({ success: 'done' }))]

test.each<[string, readonly Cue[], string]>([
  ['finished', [...sent, reports('success')], 'job_finished'],
  ['finished by its own result', [chooses(goTo('total')), chooses({ type: 'end', result: 1 })], 'job_finished'],
  ['failed by invalid input', [...sent, failsWith('INVALID_INPUT_ERROR')], 'job_failed'],
  ['quarantined by a permanent error', [...sent, failsWith('PERMANENT_ERROR')], 'job_quarantined'],
  ['quarantined by silent workers', [...sent, falls], 'job_quarantined'],
  ['failed by a status without a way', [...sent, reports('odd')], 'job_failed'],
  ['failed, as nobody took its task', [...sent, expires('untaken')], 'job_failed'],
  ['cancelled by its client', [...sent, cancels], 'job_cancelled'],
  ['cancelled by its worker', [...sent, reports('cancelled')], 'job_cancelled'],
  ['out of time', [...sent, happens({ type: 'timeRanOut' })], 'job_failed'],
  ['quarantined by its handler', [throws('a'), throws('b'), throws('c')], 'job_quarantined'],
  ['quarantined by a loop', Array.from({ length: 100 }, () => chooses(goTo('work'))), 'job_quarantined'],
  ['quarantined without its state', [chooses(goTo('nowhere'))], 'job_quarantined'],
  [
    'failed by its child',
    [chooses({ type: 'child', call: aChild(), transitions: {} }), childEnds('error')],
    'job_failed',
  ],
  [
    'failed by its approval',
    [chooses(approval({ yes: 'done' }, 1)), happens({ type: 'approvalExpired', visit: 1 })],
    'job_failed',
  ],
  [
    'given up by a person',
    [...sent, failsWith('PERMANENT_ERROR'), happens({ type: 'discarded', by: 'b' })],
    'job_failed',
  ],
])('[H-07] a webhook hears of a job that is %s', (_how, cues, event) => {
  const scene = play(open({ ...heard, executionTimeoutMs: 9_000 }), ...cues)
  expect(webhooks(scene)).toMatchObject([{ event }])
  expect(webhooks(play(open({ executionTimeoutMs: 9_000 }), ...cues))).toEqual([])
})

test('[H-07] the message is complete, in wire form, and named by job, visit and event without full stops', () => {
  const scene = play(open(heard), ...sent, reports('success', { data: { frames: 3 } }))
  const [effect] = webhooks(scene)
  expect(effect && outboxMessage(scene.job, effect)).toEqual({
    messageId: 'msg_j_2_finished',
    url: webhookUrl,
    clientId: 'ann',
    jobId: 'j',
    event: 'job_finished',
    at: 3_000,
    body: {
      event: 'job_finished',
      job_id: 'j',
      status: 'finished',
      result: { frames: 3 },
      error: null,
      timestamp: 3,
      metadata: { order: 7 },
    },
  })
})

test('[I-04] the message knows the trace of its job', () => {
  const tracing = { traceparent: '00-a', tracestate: 'b=1' }
  const scene = play(open({ ...heard, tracing }), ...sent, reports('success'))
  const [effect] = webhooks(scene)
  expect(effect && outboxMessage(scene.job, effect)).toMatchObject({ tracing })
})

test('[H-07] a message begins as one that nobody has tried to send', () => {
  const scene = play(open(heard), ...sent, reports('success'))
  const [effect] = webhooks(scene)
  const message = effect && outboxMessage(scene.job, effect)
  expect(message && pendingDelivery(message)).toEqual({
    ...message,
    status: 'pending',
    attempts: [],
    tries: 0,
    nextAttemptAt: null,
    isForced: false,
    note: null,
    endedAt: null,
  })
})

test('[H-07] an error is told without its stack; a result that is too long is left out', () => {
  const failed = play(open({ webhookUrl }), throws('a'), throws('b'), throws('c', 'Error: c at secret.ts'))
  const [news] = webhooks(failed)
  expect(news && outboxMessage(failed.job, news)?.body).toEqual({
    event: 'job_quarantined',
    job_id: 'j',
    status: 'quarantined',
    result: null,
    error: { code: 'HANDLER_FAILED', message: 'The handler of "start" failed 3 times: c' },
    timestamp: 4,
  })
  const long = { text: 'x'.repeat(LIMITS.webhookResultCharsMax) }
  const ended = play(open({ webhookUrl }), chooses(goTo('done'), long))
  const [end] = webhooks(ended)
  expect(end && outboxMessage(ended.job, end)?.body).toMatchObject({ result: null, result_omitted: true })
})

test('[H-07] a job that is quarantined twice sends two messages, each with its own name', () => {
  const once = play(open({ webhookUrl }), ...sent, failsWith('PERMANENT_ERROR'))
  const twice = play(once, retries, ...sent, failsWith('PERMANENT_ERROR'))
  expect([...webhooks(once), ...webhooks(twice)].map(({ messageId }) => messageId)).toEqual([
    'msg_j_1_quarantined',
    'msg_j_2_quarantined',
  ])
})

test('[H-07] [B-04] a webhook hears when a person is asked and reminded, and what can be decided', () => {
  const asked = play(
    open({ webhookUrl }),
    chooses(approval({ yes: 'done', no: 'work', expired: 'work' }, 9_000, { remindEveryMs: 1_000 })),
  )
  const details = { message: 'Is it good?', decisions: ['yes', 'no'], visit: 1, expires_at: 11 }
  expect(webhooks(asked)).toEqual([
    {
      type: 'webhook',
      event: 'approval_requested',
      messageId: 'msg_j_1_approval',
      details: { ...details, reminders: 0 },
    },
  ])
  const due = happens({ type: 'reminderDue', visit: 1 })
  const reminded = play(asked, due)
  const [first] = webhooks(reminded)
  expect(first).toMatchObject({ event: 'approval_reminder', messageId: 'msg_j_1_reminder_1' })
  expect(first && outboxMessage(reminded.job, first)?.body).toMatchObject({
    event: 'approval_reminder',
    status: 'waiting_for_human',
    ...details,
    reminders: 1,
  })
  expect(webhooks(play(reminded, due))).toMatchObject([{ messageId: 'msg_j_1_reminder_2' }])
})

test('[H-07] [E-01] a webhook hears what workers say, each event by its own name', () => {
  const waiting = play(open({ webhookUrl }), chooses(fanOut(aTask(), aTask())))
  const first = play(waiting, says('half done', { payload: { n: 1 }, eventId: 'e.1' }))
  expect(webhooks(first)).toEqual([
    {
      type: 'webhook',
      event: 'worker_event:half done',
      messageId: 'msg_j_1_event_1',
      details: { payload: { n: 1 }, task_id: 'j.1.0', worker_id: 'w1', event_id: 'e.1' },
    },
  ])
  expect(webhooks(play(first, says('half done', { branch: '1' })))).toMatchObject([
    { messageId: 'msg_j_1_event_2', details: { task_id: 'j.1.1', event_id: null } },
  ])
})

test('[H-07] a child has no webhook, and a job without one sends nothing', () => {
  const { effects } = play(open({ webhookUrl }), chooses({ type: 'child', call: aChild(), transitions: {} }))
  expect(effects).toMatchObject([{ type: 'mail', letter: { type: 'create' } }])
  expect(JSON.stringify(effects)).not.toContain(webhookUrl)
  const silent = open()
  expect(outboxMessage(silent.job, { type: 'webhook', event: 'x', messageId: 'm' })).toBeUndefined()
})

test('[H-07] a name has no full stop, whatever the id of its job', () => {
  const dotted = { ...play(open({ webhookUrl })), job: { ...open({ webhookUrl }).job, id: 'a.b' } }
  expect(webhooks(play(dotted, cancels))).toMatchObject([{ messageId: 'msg_a_b_1_cancelled' }])
})
