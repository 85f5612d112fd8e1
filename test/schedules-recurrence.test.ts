import { firingAfter, firingUpTo } from '@impresario/core'
import type { Trigger } from '@impresario/core'
import { dateOf, daysInMonth, weekdayOf, Zones } from '@impresario/recurrence'
import type { Zone } from '@impresario/recurrence'
import fc from 'fast-check'
import { expect, test } from 'vitest'

type DayTrigger = Exclude<Trigger, { kind: 'interval' }>

const DAY_MS = 86_400_000

/** Day by day, as schedules were computed before they shared the code of automations. */
function firstAfter(one: DayTrigger, zone: Zone, at: number): number {
  const today = Math.floor(zone.localOf(at) / DAY_MS)
  for (let day = today - 1; ; day += 1) {
    if (!isDayOf(one, day)) continue
    const firing = zone.instantOf(day * DAY_MS + one.at * 60_000, { gap: 'first', fold: 'first' })
    if (firing > at) return firing
  }
}

function isDayOf(one: DayTrigger, dayNo: number): boolean {
  if (one.kind === 'daily') return true
  if (one.kind === 'weekly') return one.days.includes(weekdayOf(dayNo))
  const { year, month, day } = dateOf(dayNo)
  return one.dates.includes(day) || (one.dates.includes('last') && day === daysInMonth(year, month))
}

const minuteOfDay = fc.oneof(fc.integer({ min: 0, max: 1_439 }), fc.integer({ min: 0, max: 240 }))
const daily = fc.record({ kind: fc.constant('daily' as const), at: minuteOfDay })
const weekly = fc.record({
  kind: fc.constant('weekly' as const),
  days: fc.uniqueArray(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
  at: minuteOfDay,
})
const monthly = fc.record({
  kind: fc.constant('monthly' as const),
  dates: fc.uniqueArray(fc.oneof(fc.integer({ min: 1, max: 31 }), fc.constant('last' as const)), { minLength: 1 }),
  at: minuteOfDay,
})

test('[K-03] [F-04] schedules of schedules.toml fire at the times that they always had', { timeout: 120_000 }, () => {
  const zones = new Zones()
  const names = [
    'Europe/Chisinau',
    'America/New_York',
    'Australia/Lord_Howe',
    'America/Sao_Paulo',
    'Pacific/Apia',
    'UTC',
  ]
  // Hours in which clocks changed, and any others.
  const moments = fc.oneof(
    fc.integer({ min: 946_684_800, max: 2_000_000_000 }),
    fc
      .tuple(fc.constantFrom(1_741_500_000, 1_762_060_000, 1_325_239_200, 1_541_300_400), fc.nat(200_000))
      .map(([at, s]) => at + s),
  )
  fc.assert(
    fc.property(fc.oneof(daily, weekly, monthly), fc.constantFrom(...names), moments, (one, timezone, second) => {
      const at = second * 1_000
      const zone = zones.named(timezone)
      const expected = firstAfter(one, zone, at)
      expect(firingAfter({ trigger: one, zone, anchor: 0 }, at)).toBe(expected)
      expect(firingUpTo({ trigger: one, zone, anchor: at - 1 }, expected)).toBe(expected)
    }),
    { numRuns: 400 },
  )
})
