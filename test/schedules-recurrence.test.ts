import { firingAfter } from '@impresario/core'
import type { Trigger } from '@impresario/core'
import { Zones, trigger } from '@impresario/recurrence'
import fc from 'fast-check'
import { expect, test } from 'vitest'

/** A trigger of schedules.toml as a cron expression. */
function asCron(one: Exclude<Trigger, { kind: 'interval' }>): string {
  const time = `${one.at % 60} ${Math.floor(one.at / 60)}`
  if (one.kind === 'daily') return `${time} * * *`
  if (one.kind === 'weekly') return `${time} * * ${one.days.join(',')}`
  return `${time} ${one.dates.map((date) => (date === 'last' ? 'L' : date)).join(',')} * *`
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

test('[K-03] schedules of schedules.toml fire at the same times as cron expressions', { timeout: 120_000 }, () => {
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
      const expected = firingAfter({ trigger: one, zone: zones.named(timezone), anchor: 0 }, at)
      const { series } = trigger({ kind: 'cron', cron: asCron(one), timezone }, zones)
      expect(series.next(at)?.at).toBe(expected)
    }),
    { numRuns: 400 },
  )
})
