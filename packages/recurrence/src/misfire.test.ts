import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { calendar } from './calendars/calendar.ts'
import type { Restriction } from './calendars/restriction.ts'
import { jitterMs } from './jitter.ts'
import { planMisfires } from './misfire.ts'
import type { MisfirePlan, MisfirePolicy } from './misfire.ts'
import { every, occurrencesBetween } from './series.ts'
import { trigger } from './trigger.ts'
import { Zones } from './zone.ts'

const zones = new Zones()
const UTC = zones.named('UTC')
const HOUR_MS = 3_600_000
const { series: hourly } = trigger({ kind: 'cron', cron: '0 * * * *', timezone: 'UTC' }, zones)

function at(time: string): number {
  return Date.parse(`2026-11-${time}:00Z`)
}

/** The weekend of the 14th and 15th is left out. */
const weekends: Restriction = {
  exclude: [
    calendar({ name: 'weekends', entries: [{ kind: 'weekdays', weekdays: [6, 7], label: 'Weekend' }] }, zones, UTC),
  ],
  only: [],
}

function plan(policy: MisfirePolicy, handled: string, now: string, more: object = {}): MisfirePlan {
  return planMisfires({ series: hourly, handledUpTo: at(handled), now: at(now), policy, ...more })
}

function times({ runs }: MisfirePlan): readonly string[] {
  return runs.map(({ scheduledFor }) => new Date(scheduledFor).toISOString().slice(8, 16))
}

describe('[K-03] what was missed', () => {
  test('is nothing while all is on time', () => {
    for (const kind of ['skip', 'run_once'] as const) {
      const planned = plan({ kind }, '10T09:00', '10T10:00')
      expect(planned).toEqual({
        runs: [{ scheduledFor: at('10T10:00'), runAt: at('10T10:00') }],
        skips: [],
        upTo: at('10T10:00'),
        next: { scheduledFor: at('10T11:00'), runAt: at('10T11:00') },
        isClockBack: false,
      })
    }
    expect(plan({ kind: 'skip' }, '10T09:00', '10T09:30')).toMatchObject({ runs: [], skips: [], upTo: at('10T09:30') })
  })

  test('is skipped, but not what is late by less than a minute', () => {
    const planned = plan({ kind: 'skip' }, '10T06:00', '10T10:01')
    expect(times(planned)).toEqual(['10T10:00'])
    expect(planned.skips).toEqual([
      { reason: 'missed', first: at('10T07:00'), last: at('10T09:00'), count: 3, isMore: false },
    ])
    expect(times(plan({ kind: 'skip' }, '10T06:00', '10T10:02'))).toEqual([])
    expect(times(plan({ kind: 'skip', graceMs: 2 * HOUR_MS }, '10T06:00', '10T10:00'))).toEqual([
      '10T08:00',
      '10T09:00',
      '10T10:00',
    ])
  })

  test('is run once, by the newest', () => {
    const planned = plan({ kind: 'run_once' }, '10T06:00', '10T10:30')
    expect(planned.runs).toEqual([{ scheduledFor: at('10T10:00'), runAt: at('10T10:30') }])
    expect(planned.skips).toEqual([
      { reason: 'merged', first: at('10T07:00'), last: at('10T09:00'), count: 3, isMore: false },
    ])
    // What is on time stands for what was missed.
    expect(times(plan({ kind: 'run_once' }, '10T06:00', '10T10:00'))).toEqual(['10T10:00'])
  })

  test('is caught up with, the newest of it, spread over a time', () => {
    const policy = { kind: 'catch_up', max: 3, spreadMs: HOUR_MS } as const
    const planned = plan(policy, '10T04:00', '10T10:30')
    expect(planned.runs).toEqual([
      { scheduledFor: at('10T08:00'), runAt: at('10T10:30') },
      { scheduledFor: at('10T09:00'), runAt: at('10T10:50') },
      { scheduledFor: at('10T10:00'), runAt: at('10T11:10') },
    ])
    expect(planned.skips).toEqual([
      { reason: 'over_max', first: at('10T05:00'), last: at('10T07:00'), count: 3, isMore: false },
    ])
    // What is on time is not part of it.
    expect(times(plan(policy, '10T04:00', '10T10:00'))).toEqual(['10T07:00', '10T08:00', '10T09:00', '10T10:00'])
  })

  test('on days that calendars leave out is told apart', () => {
    // From Friday 22:00 to Monday 01:30.
    const planned = plan({ kind: 'catch_up', max: 10 }, '13T22:00', '16T01:30', { restriction: weekends })
    expect(times(planned)).toEqual(['13T23:00', '16T00:00', '16T01:00'])
    const day = { reason: 'excluded', count: 24, isMore: false, calendar: 'weekends', label: 'Weekend' }
    expect(planned.skips).toEqual([
      { ...day, first: at('14T00:00'), last: at('14T23:00') },
      { ...day, first: at('15T00:00'), last: at('15T23:00') },
    ])
    const once = plan({ kind: 'run_once' }, '14T03:00', '15T12:00', { restriction: weekends })
    expect(once.runs).toEqual([])
    expect(once.skips.map(({ reason, count }) => [reason, count])).toEqual([
      ['excluded', 20],
      ['excluded', 13],
    ])
    expect(once.next?.scheduledFor).toBe(at('16T00:00'))
  })

  test('is counted to a bound after a long time', () => {
    const { series } = trigger({ kind: 'cron', cron: '* * * * * *', timezone: 'UTC' }, zones)
    const planned = planMisfires({
      series,
      handledUpTo: at('01T00:00'),
      now: at('30T00:00'),
      policy: { kind: 'run_once' },
    })
    expect(planned.runs).toEqual([{ scheduledFor: at('30T00:00'), runAt: at('30T00:00') }])
    expect(planned.skips).toEqual([
      { reason: 'merged', first: at('01T00:00') + 1_000, last: at('30T00:00') - 1_000, count: 10_000, isMore: true },
    ])
  })

  test('is served in parts where it is too much for one go', () => {
    const series = every(1_000, at('01T00:00'))
    const policy = { kind: 'skip', graceMs: 24 * HOUR_MS } as const
    const first = planMisfires({ series, handledUpTo: at('10T00:00'), now: at('10T01:00'), policy })
    expect(first.runs).toHaveLength(1_000)
    expect(first.upTo).toBe(at('10T00:00') + 1_000_000)
    const second = planMisfires({ series, handledUpTo: first.upTo, now: at('10T01:00'), policy })
    expect(second.runs[0]?.scheduledFor).toBe(first.upTo + 1_000)
  })

  test('is nothing when the clock goes back, and is begun anew when it was far ahead', () => {
    const back = plan({ kind: 'catch_up', max: 5 }, '10T10:00', '10T08:00')
    expect(back).toMatchObject({ runs: [], skips: [], upTo: at('10T10:00'), isClockBack: false })
    expect(back.next?.scheduledFor).toBe(at('10T11:00'))
    const far = plan({ kind: 'catch_up', max: 5 }, '28T10:00', '10T08:30')
    expect(far).toMatchObject({ runs: [], skips: [], upTo: at('10T08:30'), isClockBack: true })
    expect(far.next?.scheduledFor).toBe(at('10T09:00'))
  })

  test('ends with the series', () => {
    const { series } = trigger({ kind: 'once', at: '2026-11-10T09:00:00Z', timezone: 'UTC' }, zones)
    const planned = planMisfires({ series, handledUpTo: 0, now: at('10T12:00'), policy: { kind: 'run_once' } })
    expect(times(planned)).toEqual(['10T09:00'])
    expect(planned.next).toBeUndefined()
  })

  test('needs a policy that makes sense', () => {
    expect(() => plan({ kind: 'catch_up', max: 0 }, '10T06:00', '10T10:30')).toThrow(/max of catch_up/)
    expect(() => plan({ kind: 'catch_up', max: 1_001 }, '10T06:00', '10T10:30')).toThrow(/from 1 to 1000/)
    expect(() => plan({ kind: 'skip', graceMs: -1 }, '10T06:00', '10T10:30')).toThrow(/grace/)
  })

  test('is in exactly one run or one skip, whatever the policy and the times', () => {
    const policy = fc.oneof(
      fc.record({ kind: fc.constantFrom('skip' as const, 'run_once' as const), graceMs: fc.nat(3 * HOUR_MS) }),
      fc.record({
        kind: fc.constant('catch_up' as const),
        max: fc.integer({ min: 1, max: 40 }),
        spreadMs: fc.nat(HOUR_MS),
      }),
    )
    const schedule = fc.constantFrom('0 * * * *', '*/20 9-17 * * *', '0 9 * * 1-5', '30 2 * * *')
    fc.assert(
      fc.property(
        policy,
        schedule,
        fc.nat(10_000),
        fc.nat(6_000),
        fc.boolean(),
        (chosen, cron, begin, minutes, isRestricted) => {
          const { series } = trigger({ kind: 'cron', cron, timezone: 'Europe/Berlin' }, zones)
          const handledUpTo = Date.UTC(2026, 9, 20) + begin * 60_000
          const now = handledUpTo + minutes * 60_000
          const restriction = isRestricted ? weekends : undefined
          const planned = planMisfires({ series, handledUpTo, now, policy: chosen, restriction })
          const due = occurrencesBetween(series, handledUpTo, planned.upTo, 100_000).map((one) => one.at)
          const runs = planned.runs.map(({ scheduledFor }) => scheduledFor)
          const skipped = planned.skips.flatMap(({ first, last }) => due.filter((one) => one >= first && one <= last))
          expect([...runs, ...skipped].sort((a, b) => a - b)).toEqual(due)
          expect(planned.skips.reduce((sum, { count }) => sum + count, 0)).toBe(skipped.length)
          for (const { runAt } of planned.runs) expect(runAt).toBeGreaterThanOrEqual(now)
          const weekend = runs.filter((one) => [0, 6].includes(new Date(one).getUTCDay()))
          expect(isRestricted ? weekend : []).toEqual([])
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('[K-03] jitter', () => {
  test('is the same for the same seed and time, and differs between others', () => {
    const delays = Array.from({ length: 1_000 }, (_, index) => jitterMs(`automation ${index}`, at('10T09:00'), 60_000))
    expect(delays).toEqual(
      Array.from({ length: 1_000 }, (_, index) => jitterMs(`automation ${index}`, at('10T09:00'), 60_000)),
    )
    expect(Math.min(...delays)).toBeLessThan(1_000)
    expect(Math.max(...delays)).toBeGreaterThan(59_000)
    const thirds = [0, 1, 2].map((third) => delays.filter((delay) => Math.floor((delay * 3) / 60_001) === third).length)
    for (const third of thirds) expect(third).toBeGreaterThan(250)
    expect(jitterMs('a', 0, 0)).toBe(0)
    expect(jitterMs('a', 0, -5)).toBe(0)
  })

  test('delays runs, and nothing runs earlier than now', () => {
    const jitter = { maxMs: 10 * 60_000, seed: 'a' }
    const delay = jitterMs('a', at('10T10:00'), jitter.maxMs)
    const planned = plan({ kind: 'skip' }, '10T09:00', '10T10:00', { jitter })
    expect(planned.runs).toEqual([{ scheduledFor: at('10T10:00'), runAt: at('10T10:00') + delay }])
    expect(planned.next?.runAt).toBe(at('10T11:00') + jitterMs('a', at('10T11:00'), jitter.maxMs))
  })
})
