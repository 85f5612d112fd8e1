import { expect, test } from 'vitest'
import { cronOf, kindOf, plainTime, TRIGGER_KINDS, triggerOf } from './trigger-kind.ts'

test.for([
  ['30 9 * * *', { kind: 'daily', time: '09:30', day: 1 }],
  ['0 17 * * 1-5', { kind: 'weekdays', time: '17:00', day: 1 }],
  ['5 0 * * 0', { kind: 'weekly', time: '00:05', day: 0 }],
  ['0 8 15 * *', { kind: 'monthly', time: '08:00', day: 15 }],
  ['*/5 * * * *', undefined],
  ['0 8 15 * 1', undefined],
  ['75 8 * * *', undefined],
] as const)('[M-02] a plain time is recognised in %s and written back', ([cron, plain]) => {
  expect(plainTime(cron)).toEqual(plain)
  expect(plain === undefined ? cron : cronOf(plain)).toBe(cron)
})

test('[M-02] every kind of trigger is recognised in what it begins with', () => {
  for (const kind of TRIGGER_KINDS) expect(kindOf(triggerOf(kind, {}))).toBe(kind)
})
