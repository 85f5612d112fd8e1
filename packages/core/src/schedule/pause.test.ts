import { Zone } from '@impresario/recurrence'
import { expect, test } from 'vitest'
import type { PastFiring, ScheduleRecord } from '../ports/storage.ts'
import { RECENT_MAX, pausedRecord, resumedRecord } from './pause.ts'
import { plan } from './plan.ts'
import { SCHEDULER_CLIENT, triggerKey } from './schedule.ts'
import type { Schedule, Trigger } from './schedule.ts'

const at = (written: string): number => Date.parse(`${written}:00Z`)
const zone = new Zone('UTC')
const daily: Trigger = { kind: 'daily', at: 9 * 60 }
const hourly: Trigger = { kind: 'interval', everyMs: 3_600_000 }
const paused = { at: at('2026-05-01T10:00'), by: 'chief' }

function schedule(trigger: Trigger): Schedule {
  return {
    name: 's',
    blueprint: 'b',
    initialData: {},
    isEnabled: true,
    trigger,
    timeZone: 'UTC',
    misfire: 'catch_up',
    catchUpMax: 10,
    clientId: SCHEDULER_CLIENT,
  }
}

function recordOf(one: Schedule, recent?: readonly PastFiring[]): ScheduleRecord {
  const firedFor = at('2026-05-01T09:00')
  return { firedFor, firedAt: firedFor, jobId: 'j', trigger: triggerKey(one), ...(recent && { recent }) }
}

test('[F-04] a paused schedule asks for nothing, also with another trigger', () => {
  const record = pausedRecord(schedule(daily), recordOf(schedule(daily)), paused)
  expect(record).toEqual({ ...recordOf(schedule(daily)), paused })
  const later = at('2026-05-09T10:00')
  expect(plan(schedule(daily), zone, record, later)).toEqual({ type: 'paused' })
  expect(plan(schedule(hourly), zone, record, later)).toEqual({ type: 'paused' })
})

test('[F-04] times that pass while it is paused are skipped, whatever is done with missed ones', () => {
  const one = schedule(daily)
  const now = at('2026-05-04T12:00')
  const resumed = resumedRecord(one, zone, pausedRecord(one, recordOf(one), paused), now)
  const firedFor = at('2026-05-04T09:00')
  expect(resumed).toEqual({
    firedFor,
    firedAt: now,
    jobId: undefined,
    trigger: triggerKey(one),
    recent: [{ firedFor, firedAt: now, jobId: undefined, skipped: 'paused' }],
  })
  expect(plan(one, zone, resumed, now)).toEqual({ type: 'wait', nextAt: at('2026-05-05T09:00') })
})

test('[F-04] the history of firings stays as short as before', () => {
  const one = schedule(daily)
  const old: PastFiring = { firedFor: 0, firedAt: 0, jobId: 'j', skipped: undefined }
  const before = recordOf(
    one,
    Array.from({ length: RECENT_MAX }, () => old),
  )
  const { recent } = resumedRecord(one, zone, pausedRecord(one, before, paused), at('2026-05-04T12:00'))
  expect(recent).toHaveLength(RECENT_MAX)
  expect(recent?.[0]).toMatchObject({ skipped: 'paused' })
})

test('[F-04] a pause in which no time passes leaves nothing behind', () => {
  const one = schedule(daily)
  const record = pausedRecord(one, recordOf(one), paused)
  expect(resumedRecord(one, zone, record, at('2026-05-02T08:59'))).toEqual(recordOf(one))
})

test('[F-04] with another trigger it begins anew when it goes on', () => {
  const before = recordOf(schedule(daily))
  const resumed = resumedRecord(schedule(hourly), zone, pausedRecord(schedule(daily), before, paused), paused.at)
  expect(resumed).toEqual(before)
  expect(plan(schedule(hourly), zone, resumed, paused.at)).toEqual({ type: 'fire', times: [paused.at] })
})

test('[F-04] one that is paused before it has begun keeps in step with that moment', () => {
  const one = schedule(hourly)
  const record = pausedRecord(one, undefined, paused)
  const resumed = resumedRecord(one, zone, record, at('2026-05-01T12:30'))
  expect(resumed).toMatchObject({ firedFor: at('2026-05-01T12:00'), recent: [{ skipped: 'paused' }] })
  expect(plan(one, zone, resumed, at('2026-05-01T12:30'))).toEqual({ type: 'wait', nextAt: at('2026-05-01T13:00') })
})
