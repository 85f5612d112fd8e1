import { Zone } from '@impresario/recurrence'
import { expect, test } from 'vitest'
import type { ScheduleRecord } from '../ports/storage.ts'
import { firingAfter, firingUpTo } from './firing.ts'
import { plan } from './plan.ts'
import type { Plan } from './plan.ts'
import { CATCH_UP_DEFAULT, SCHEDULER_CLIENT, triggerKey } from './schedule.ts'
import type { Misfire, Schedule, Trigger } from './schedule.ts'

const HOUR_MS = 3_600_000

function at(written: string): number {
  return Date.parse(`${written}:00Z`)
}

function text(instant: number): string {
  return new Date(instant).toISOString().slice(0, 16)
}

function firings(trigger: Trigger, zone: string, after: string, count: number): string[] {
  const timetable = { trigger, zone: new Zone(zone), anchor: at(after) }
  const found: number[] = []
  for (let last = at(after); found.length < count; last = found.at(-1)!) found.push(firingAfter(timetable, last))
  // The same ones are found from behind.
  const back: number[] = []
  for (let last = found.at(-1)!; back.length < count; last = back[0]! - 1) back.unshift(firingUpTo(timetable, last))
  expect(back).toEqual(found)
  return found.map(text)
}

test('[F-04] every day at a time, over both changes of the clock in Berlin', () => {
  const half: Trigger = { kind: 'daily', at: 150 }
  expect(firings(half, 'Europe/Berlin', '2026-03-28T00:00', 3)).toEqual([
    '2026-03-28T01:30',
    // 02:30 does not exist: the first moment after the gap.
    '2026-03-29T01:00',
    '2026-03-30T00:30',
  ])
  expect(firings(half, 'Europe/Berlin', '2026-10-24T00:00', 3)).toEqual([
    '2026-10-24T00:30',
    // 02:30 comes twice: once, the first time.
    '2026-10-25T00:30',
    '2026-10-26T01:30',
  ])
})

test('[F-04] every day at midnight where midnight is left out', () => {
  const midnight: Trigger = { kind: 'daily', at: 0 }
  expect(firings(midnight, 'America/Santiago', '2026-09-05T12:00', 2)).toEqual(['2026-09-06T04:00', '2026-09-07T03:00'])
  // Samoa left out the whole 30th: what was due on it falls together with the 31st.
  expect(firings(midnight, 'Pacific/Apia', '2011-12-29T00:00', 3)).toEqual([
    '2011-12-29T10:00',
    '2011-12-30T10:00',
    '2011-12-31T10:00',
  ])
})

test('[F-04] on days of the week, in the zone of the schedule', () => {
  const trigger: Trigger = { kind: 'weekly', days: [1, 5], at: 60 }
  // In Tokyo Monday 01:00 is still Sunday in UTC.
  expect(firings(trigger, 'Asia/Tokyo', '2026-06-01T00:00', 3)).toEqual([
    '2026-06-04T16:00',
    '2026-06-07T16:00',
    '2026-06-11T16:00',
  ])
})

test('[F-04] on days of the month: those that a month does not have are left out, the last one is always there', () => {
  const ends: Trigger = { kind: 'monthly', dates: [30, 31], at: 0 }
  expect(firings(ends, 'UTC', '2026-01-30T12:00', 4)).toEqual([
    '2026-01-31T00:00',
    '2026-03-30T00:00',
    '2026-03-31T00:00',
    '2026-04-30T00:00',
  ])
  const last: Trigger = { kind: 'monthly', dates: ['last'], at: 0 }
  expect(firings(last, 'UTC', '2027-12-31T12:00', 3)).toEqual([
    '2028-01-31T00:00',
    '2028-02-29T00:00',
    '2028-03-31T00:00',
  ])
})

test.each([
  { kind: 'weekly', days: [], at: 0 },
  { kind: 'monthly', dates: [], at: 0 },
] as const)('[F-04] a trigger without a day never fires: $kind', (trigger) => {
  const timetable = { trigger, zone: new Zone('UTC'), anchor: 0 }
  expect(firingAfter(timetable, 0)).toBe(Number.POSITIVE_INFINITY)
  expect(firingUpTo(timetable, 0)).toBe(Number.NEGATIVE_INFINITY)
})

function schedule(trigger: Trigger, misfire: Misfire = 'run_once', catchUpMax = CATCH_UP_DEFAULT): Schedule {
  return {
    name: 's',
    blueprint: 'b',
    initialData: {},
    isEnabled: true,
    trigger,
    timeZone: 'UTC',
    misfire,
    catchUpMax,
    clientId: SCHEDULER_CLIENT,
  }
}

function planned(one: Schedule, firedFor: string | undefined, now: string): Plan {
  const record: ScheduleRecord | undefined =
    firedFor === undefined
      ? undefined
      : { firedFor: at(firedFor), firedAt: at(firedFor), jobId: 'j', trigger: triggerKey(one) }
  return plan(one, new Zone('UTC'), record, at(now))
}

const daily: Trigger = { kind: 'daily', at: 9 * 60 }
const hourly: Trigger = { kind: 'interval', everyMs: HOUR_MS }

test('[F-04] an interval runs at the start, a calendar waits for its time', () => {
  expect(planned(schedule(hourly), undefined, '2026-05-01T10:07')).toEqual({
    type: 'fire',
    times: [at('2026-05-01T10:07')],
  })
  expect(planned(schedule(daily), undefined, '2026-05-01T10:07')).toEqual({
    type: 'note',
    upTo: at('2026-05-01T10:07'),
    reason: 'begun',
  })
})

test('[F-04] another trigger or zone under the same name begins anew; other data do not', () => {
  const one = schedule(daily)
  const record: ScheduleRecord = { firedFor: at('2026-05-01T09:00'), firedAt: 0, jobId: 'j', trigger: triggerKey(one) }
  const now = at('2026-05-01T10:00')
  const zone = new Zone('UTC')
  expect(plan({ ...one, blueprint: 'other' }, zone, record, now).type).toBe('wait')
  expect(plan({ ...one, timeZone: 'Asia/Tokyo' }, zone, record, now)).toMatchObject({ type: 'note', reason: 'begun' })
  expect(plan({ ...one, trigger: hourly }, zone, record, now).type).toBe('fire')
})

test('[F-04] an interval stays aligned to its first run and does not drift', () => {
  const one = schedule(hourly)
  expect(planned(one, '2026-05-01T10:07', '2026-05-01T11:06')).toEqual({ type: 'wait', nextAt: at('2026-05-01T11:07') })
  expect(planned(one, '2026-05-01T10:07', '2026-05-01T11:08')).toEqual({
    type: 'fire',
    times: [at('2026-05-01T11:07')],
  })
  expect(planned(one, '2026-05-01T10:07', '2026-05-02T00:30')).toEqual({
    type: 'fire',
    times: [at('2026-05-02T00:07')],
  })
})

test('[F-04] what was missed: skipped, made good once, or made good each', () => {
  const days = ['2026-05-01T09:00', '2026-05-04T12:00'] as const
  expect(planned(schedule(daily, 'skip'), ...days)).toEqual({
    type: 'note',
    upTo: at('2026-05-04T09:00'),
    reason: 'missed',
  })
  expect(planned(schedule(daily, 'run_once'), ...days)).toEqual({ type: 'fire', times: [at('2026-05-04T09:00')] })
  expect(planned(schedule(daily, 'catch_up'), ...days)).toEqual({
    type: 'fire',
    times: ['2026-05-02T09:00', '2026-05-03T09:00', '2026-05-04T09:00'].map(at),
  })
  expect(planned(schedule(daily, 'catch_up', 2), ...days)).toEqual({
    type: 'fire',
    times: ['2026-05-03T09:00', '2026-05-04T09:00'].map(at),
  })
  expect(planned(schedule(daily, 'catch_up'), '2026-05-03T09:00', '2026-05-04T12:00')).toEqual({
    type: 'fire',
    times: [at('2026-05-04T09:00')],
  })
})

test('[F-04] a firing that is a moment late was not missed', () => {
  expect(planned(schedule(daily, 'skip'), '2026-05-01T09:00', '2026-05-02T09:01')).toEqual({
    type: 'fire',
    times: [at('2026-05-02T09:00')],
  })
})

test('[F-04] a clock that goes back fires nothing again', () => {
  expect(planned(schedule(daily), '2026-05-02T09:00', '2026-05-01T08:00')).toEqual({
    type: 'wait',
    nextAt: at('2026-05-03T09:00'),
  })
  expect(planned(schedule(hourly), '2026-05-02T09:00', '2026-05-02T07:30')).toEqual({
    type: 'wait',
    nextAt: at('2026-05-02T10:00'),
  })
})

test('[F-04] a clock that was years ahead does not silence a schedule for years', () => {
  expect(planned(schedule(daily), '2036-01-01T09:00', '2026-05-01T08:00')).toEqual({
    type: 'note',
    upTo: at('2026-05-01T08:00'),
    reason: 'clock went back',
  })
})
