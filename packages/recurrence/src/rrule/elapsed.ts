import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '@impresario/protocol'
import { HORIZON, dayOf, timeOf } from '../civil.ts'
import type { Occurrence, Series } from '../series.ts'
import { TimesOfDay } from '../times-of-day.ts'
import type { Stretch, Zone } from '../zone.ts'
import { hasPosition, nextAllowedDay } from './days.ts'
import type { Rule } from './rule.ts'

const UNITS_MS: Readonly<Record<string, number>> = { HOURLY: HOUR_MS, MINUTELY: MINUTE_MS, SECONDLY: SECOND_MS }
/**
 * This many periods in a row without a match mean that there is none: any rule that repeats daily would have matched
 * long before.
 */
const FRUITLESS_MAX = 100_000
/**
 * This many clock changes without a period at an allowed time mean that there is none. It is more than thirty years.
 */
const FRUITLESS_STRETCHES_MAX = 100

/** An hourly, minutely or secondly rule with the data needed to evaluate it. */
interface Elapsed {
  readonly rule: Rule
  readonly zone: Zone
  readonly unitMs: number
  readonly stepMs: number
  /** When the first period begins. */
  readonly base: number
  /** The allowed times within an hour or a minute. */
  readonly within: TimesOfDay
  /** The times of day at which a period may begin, if they are restricted. */
  readonly allowed: TimesOfDay | undefined
  /** By offset: whether the periods ever reach an allowed time of day. */
  readonly reachable: Map<number, boolean>
}

/**
 * The times of an hourly, minutely or secondly rule. They are counted in real time: every two hours stays every two
 * hours when clocks are put forward or back. The other parts of the rule are compared with the local time.
 */
export function elapsedSeries(rule: Rule, zone: Zone, start: number): Series {
  const elapsed = prepare(rule, zone, start)
  const startAt = zone.instantOf(start, { gap: 'shift', fold: 'first' })
  if (!hasPosition(rule, elapsed.within.size)) return { next: () => undefined }
  return { next: (after) => search(elapsed, Math.max(after, startAt - 1)) }
}

function prepare(rule: Rule, zone: Zone, start: number): Elapsed {
  const unitMs = UNITS_MS[rule.frequency] ?? HOUR_MS
  const startAt = zone.instantOf(start, { gap: 'shift', fold: 'first' })
  const shown = zone.localOf(startAt)
  const seconds = Math.floor(timeOf(shown) / SECOND_MS)
  const or = (values: readonly number[], value: number): readonly number[] => (values.length > 0 ? values : [value])
  const within = new TimesOfDay(
    [0],
    unitMs > MINUTE_MS ? or(rule.minutes, Math.floor(seconds / 60) % 60) : [0],
    unitMs > SECOND_MS ? or(rule.seconds, seconds % 60) : [0],
  )
  return {
    rule,
    zone,
    unitMs,
    stepMs: unitMs * rule.interval,
    base: startAt - (timeOf(shown) % unitMs),
    within,
    allowed: allowedTimes(rule, unitMs),
    reachable: new Map(),
  }
}

function allowedTimes({ hours, minutes, seconds }: Rule, unitMs: number): TimesOfDay | undefined {
  const minute = unitMs <= MINUTE_MS ? minutes : []
  const second = unitMs <= SECOND_MS ? seconds : []
  if (hours.length + minute.length + second.length === 0) return undefined
  const or = (values: readonly number[], count: number): readonly number[] =>
    values.length > 0 ? values : Array.from({ length: count }, (_, index) => index)
  return new TimesOfDay(
    or(hours, 24),
    unitMs <= MINUTE_MS ? or(minute, 60) : [0],
    unitMs <= SECOND_MS ? or(second, 60) : [0],
  )
}

function search(elapsed: Elapsed, after: number): Occurrence | undefined {
  const { zone, base, stepMs, unitMs } = elapsed
  let period = Math.max(0, Math.floor((after - base) / stepMs))
  let outOfReach = 0
  for (let fruitless = 0; fruitless < FRUITLESS_MAX && outOfReach < FRUITLESS_STRETCHES_MAX; fruitless += 1) {
    const begin = base + period * stepMs
    if (begin > HORIZON) return undefined
    const found = firstIn(elapsed, begin, after)
    if (found !== undefined) return found
    const stretch = zone.stretchAt(begin + unitMs)
    const isInReach = isReachable(elapsed, stretch.offsetMs)
    outOfReach = isInReach ? 0 : outOfReach + 1
    const target = isInReach ? worthLooking(elapsed, stretch, begin + unitMs) : stretch.to
    if (target === undefined) return undefined
    // The first period that ends after the target.
    period = Math.max(period + 1, Math.floor((target - unitMs - base) / stepMs) + 1)
  }
  return undefined
}

/** The earliest instant from here on at which the local time may match; it may be too early. */
function worthLooking(elapsed: Elapsed, { to, offsetMs }: Stretch, from: number): number | undefined {
  const { rule, unitMs, allowed } = elapsed
  // Rounded down to the hour or minute, because the matching time may be later in it.
  const shown = from + offsetMs
  let local = shown - (timeOf(shown) % unitMs)
  for (;;) {
    const dayNo = nextAllowedDay(rule, dayOf(local), dayOf(HORIZON))
    if (dayNo === undefined) return undefined
    if (dayNo > dayOf(local)) local = dayNo * DAY_MS
    const index = allowed?.indexAfter(timeOf(local) - 1) ?? 0
    if (allowed === undefined || index < allowed.size) {
      const time = allowed?.at(index) ?? timeOf(local)
      return Math.min(to, Math.max(from, dayNo * DAY_MS + time - offsetMs))
    }
    local = (dayNo + 1) * DAY_MS
  }
}

/** Periods reach the same times of day repeatedly: those that differ by the greatest common divisor of step and day. */
function isReachable({ allowed, reachable, stepMs, base, unitMs }: Elapsed, offsetMs: number): boolean {
  if (allowed === undefined) return true
  const known = reachable.get(offsetMs)
  if (known !== undefined) return known
  const divisor = commonDivisor(stepMs, DAY_MS)
  const rest = (((base + offsetMs) % divisor) + divisor) % divisor
  let isFound = false
  for (let index = 0; index < allowed.size && !isFound; index += 1) {
    // A period may begin inside an hour of the clock, where an offset has half hours.
    const distance = (((rest - allowed.at(index)) % divisor) + divisor) % divisor
    isFound = distance < unitMs || divisor - distance < unitMs
  }
  reachable.set(offsetMs, isFound)
  return isFound
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

/** The first time in a period that is later than `after` and that the rule allows. */
function firstIn(elapsed: Elapsed, begin: number, after: number): Occurrence | undefined {
  const { rule, unitMs } = elapsed
  if (rule.positions.length === 0) return firstBetween(elapsed, Math.max(begin - 1, after), begin + unitMs)
  const found: Occurrence[] = []
  for (let last = begin - 1; ;) {
    const next = firstBetween(elapsed, last, begin + unitMs)
    if (next === undefined) break
    found.push(next)
    last = next.at
  }
  const indexes = new Set(rule.positions.map((position) => (position > 0 ? position - 1 : found.length + position)))
  return found.find(({ at }, index) => at > after && indexes.has(index))
}

/** The first time in (after, end) that the rule allows, within one period, which is usually one hour of the clock. */
function firstBetween(elapsed: Elapsed, after: number, end: number): Occurrence | undefined {
  const { zone, unitMs, within } = elapsed
  for (let last = after; last + 1 < end;) {
    const { to, offsetMs } = zone.stretchAt(last + 1)
    const until = Math.min(to, end) + offsetMs
    const shown = last + 1 + offsetMs
    for (let unit = shown - (timeOf(shown) % unitMs); unit < until; unit += unitMs) {
      if (!isAllowed(elapsed, unit)) continue
      const index = within.indexAfter(shown - 1 - unit)
      const local = unit + within.at(index)
      if (index < within.size && local < until) return { at: local - offsetMs, local }
    }
    last = Math.min(to, end) - 1
  }
  return undefined
}

/** Whether the rule allows the times in an hour, minute or second of the clock. */
function isAllowed({ rule, allowed }: Elapsed, unit: number): boolean {
  const dayNo = dayOf(unit)
  if (nextAllowedDay(rule, dayNo, dayNo) === undefined) return false
  if (allowed === undefined) return true
  const index = allowed.indexAfter(timeOf(unit) - 1)
  return index < allowed.size && allowed.at(index) === timeOf(unit)
}
