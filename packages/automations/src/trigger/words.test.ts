import { Zones } from '@impresario/recurrence'
import { expect, test } from 'vitest'
import { triggerWords } from './words.ts'

const zones = new Zones()
const condition = {
  kind: 'condition',
  expression: 'output.free < 10',
  reset: undefined,
  tool: undefined,
  forSeconds: 0,
  cooldownSeconds: 0,
} as const

test('[K-02] every kind of trigger is told in words', () => {
  const words = [
    { kind: 'time', spec: { kind: 'cron', cron: '30 2 * * *', timezone: 'Europe/Berlin' } },
    { kind: 'event', topic: 'order.*', filter: undefined },
    { kind: 'event', topic: 'order.*', filter: 'event.payload.total > 100' },
    { kind: 'webhook', source: 'repo', filter: undefined },
    { kind: 'manual' },
    condition,
    { ...condition, tool: { uses: 'task.disk', with: {}, everySeconds: 60 }, forSeconds: 300 },
  ] as const
  expect(words.map((each) => triggerWords(each, zones))).toEqual([
    'At 02:30 every day, Europe/Berlin',
    'On event "order.*"',
    'On event "order.*", if event.payload.total > 100',
    'On a message from webhook source "repo"',
    'Only when it is started by hand',
    'When output.free < 10, of reported values',
    'When output.free < 10 for 300 s, of task.disk, asked every 60 s',
  ])
})
