import { wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import type { Quota } from '@impresario/engine'
import { DAY_MS } from '@impresario/protocol'
import { Zone, dateOf, dayNumber } from '@impresario/recurrence'
import type { Caller } from '../http/access.ts'

/** A month ends at midnight: at the second one, if clocks are put back over it, and with the change, if it is skipped. */
const MONTH_RULES = { gap: 'first', fold: 'second' } as const

/** The quotas of clients, by the month of the time zone. */
export class QuotaCalendar {
  readonly #clock: Clock
  readonly #zone: Zone

  constructor(clock: Clock, timeZone: string) {
    this.#clock = clock
    this.#zone = new Zone(timeZone)
  }

  /** How many jobs a caller may start this month; `undefined`: any number. */
  quotaOf({ monthlyAttempts }: Caller): Quota | undefined {
    if (monthlyAttempts === undefined) return undefined
    const now = wallTime(this.#clock)
    const { year, month } = dateOf(Math.floor(this.#zone.localOf(now) / DAY_MS))
    const nextMonth = month === 12 ? dayNumber(year + 1, 1, 1) : dayNumber(year, month + 1, 1)
    return {
      limit: monthlyAttempts,
      period: `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}`,
      renewsInMs: this.#zone.instantOf(nextMonth * DAY_MS, MONTH_RULES) - now,
    }
  }
}
