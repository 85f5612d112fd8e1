import { wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import type { Quota } from '@impresario/engine'
import { DAY_MS } from '@impresario/protocol'
import type { Caller } from '../http/access.ts'

interface Month {
  readonly period: string
  readonly endsAt: number
}

/** Longer than any month, also with an hour put back. */
const MONTH_MS_MAX = 32 * DAY_MS

/**
 * The quotas of clients, by the month of the time zone. When a month ends is found by asking the calendar, not by
 * reckoning with offsets: zones change them, and not always at night.
 */
export class QuotaCalendar {
  readonly #clock: Clock
  readonly #format: Intl.DateTimeFormat
  #month: Month = { period: '', endsAt: Number.NEGATIVE_INFINITY }
  #from = Number.POSITIVE_INFINITY

  constructor(clock: Clock, timeZone: string) {
    this.#clock = clock
    this.#format = new Intl.DateTimeFormat('en-CA', {
      timeZone,
      calendar: 'gregory',
      year: 'numeric',
      month: '2-digit',
    })
  }

  /** What a caller may start now; `undefined`: as much as it likes. */
  quotaOf({ monthlyAttempts }: Caller): Quota | undefined {
    if (monthlyAttempts === undefined) return undefined
    const now = wallTime(this.#clock)
    const { period, endsAt } = this.#monthAt(now)
    return { limit: monthlyAttempts, period, renewsInMs: endsAt - now }
  }

  #monthAt(now: number): Month {
    if (now >= this.#from && now < this.#month.endsAt) return this.#month
    const period = this.#nameOf(now)
    let within = now
    let beyond = now + MONTH_MS_MAX
    while (beyond - within > 1) {
      const middle = Math.floor((within + beyond) / 2)
      if (this.#nameOf(middle) === period) within = middle
      else beyond = middle
    }
    this.#from = now
    this.#month = { period, endsAt: beyond }
    return this.#month
  }

  #nameOf(at: number): string {
    const parts = new Map(this.#format.formatToParts(at).map(({ type, value }) => [type, value]))
    return `${parts.get('year')?.padStart(4, '0')}-${parts.get('month')}`
  }
}
