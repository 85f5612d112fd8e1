/** A rule, and the query for dateutil. */
export interface RandomRule {
  /** Without COUNT and UNTIL. */
  readonly rrule: string
  /** `20240229T120000`, local time in `zone`. */
  readonly dtstart: string
  readonly zone: string
  readonly count: number | undefined
  /** UNTIL is this many days after DTSTART. */
  readonly untilDays: number | undefined
  readonly isSubDaily: boolean
}

/** Half of them have clock changes, some by half an hour, two hours, at midnight, or by a day. */
const ZONES = [
  'UTC',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Asia/Tokyo',
  'Pacific/Kiritimati',
  'America/Phoenix',
  'Africa/Lagos',
  'Europe/Chisinau',
  'Europe/London',
  'Europe/Berlin',
  'America/New_York',
  'America/St_Johns',
  'America/Sao_Paulo',
  'America/Santiago',
  'Australia/Lord_Howe',
  'Australia/Sydney',
  'Antarctica/Troll',
  'Africa/Casablanca',
  'Africa/Cairo',
  'Pacific/Apia',
] as const

type Chance = () => number

/** The same seed gives the same numbers. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const DAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'] as const
const FREQUENCIES = ['YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY', 'SECONDLY'] as const

/** The maximum number of times in a period of the rule. */
function periodSize(parts: readonly string[], frequency: (typeof FREQUENCIES)[number]): number {
  const sizeOf = (name: string): number => parts.find((part) => part.startsWith(`${name}=`))?.split(',').length ?? 1
  const finer = { HOURLY: ['BYMINUTE', 'BYSECOND'], MINUTELY: ['BYSECOND'], SECONDLY: [] as string[] }
  const names = frequency in finer ? finer[frequency as keyof typeof finer] : ['BYHOUR', 'BYMINUTE', 'BYSECOND']
  const days = { YEARLY: 3, MONTHLY: 3, WEEKLY: sizeOf('BYDAY') } as Readonly<Record<string, number>>
  return names.reduce((size, name) => size * sizeOf(name), days[frequency] ?? 1)
}

/**
 * Makes one rule of RFC 5545. Left out is what dateutil takes differently, for reasons of its own:
 * - BYDAY with and without numbers in one rule: it wants both.
 * - BYWEEKNO without days (it takes the whole week), in every n-th year (it counts years by the calendar), and where the
 *   first or last week lies across the turn of the year (it takes some years to have 53 weeks that have 52).
 * - BYSETPOS in a week that DTSTART cuts: it forgets the days before.
 */
export function randomRule(chance: Chance): RandomRule {
  const upTo = (max: number): number => Math.floor(chance() * max)
  const pick = <Item>(from: readonly Item[]): Item => from[upTo(from.length)] as Item
  const often = (part: number): boolean => chance() < part
  const some = (count: number, make: () => number | string): string =>
    [...new Set(Array.from({ length: 1 + upTo(count) }, make))].join(',')
  const signed = (max: number): number => (often(0.3) ? -1 : 1) * (1 + upTo(max))

  const frequency = pick(FREQUENCIES)
  const isSubDaily = FREQUENCIES.indexOf(frequency) > 3
  const parts = [`FREQ=${frequency}`]
  const has = (name: string): boolean => parts.some((part) => part.startsWith(`${name}=`))
  const add = (name: string, part: number, value: () => string | number): void => {
    if (often(part)) parts.push(`${name}=${value()}`)
  }
  add('BYMONTH', 0.25, () => some(3, () => 1 + upTo(12)))
  if (frequency === 'YEARLY') add('BYWEEKNO', 0.15, () => some(3, () => (often(0.3) ? -1 : 1) * (1 + upTo(51))))
  if (frequency === 'YEARLY' || isSubDaily) add('BYYEARDAY', isSubDaily ? 0.05 : 0.15, () => some(4, () => signed(366)))
  if (frequency !== 'WEEKLY') add('BYMONTHDAY', 0.25, () => some(4, () => signed(31)))
  const needsDay = has('BYWEEKNO') && !has('BYYEARDAY') && !has('BYMONTHDAY')
  const canCount = (frequency === 'MONTHLY' || frequency === 'YEARLY') && !has('BYWEEKNO')
  const ordinal = canCount && often(0.5) ? (frequency === 'YEARLY' && !has('BYMONTH') && often(0.5) ? 53 : 5) : 0
  add('BYDAY', needsDay ? 1 : 0.35, () => some(3, () => `${ordinal > 0 ? signed(ordinal) : ''}${pick(DAYS)}`))
  add('BYHOUR', 0.3, () => some(3, () => upTo(24)))
  add('BYMINUTE', 0.3, () => some(3, () => upTo(60)))
  add('BYSECOND', 0.2, () => some(3, () => upTo(60)))
  if (!has('BYWEEKNO')) add('INTERVAL', 0.4, () => 1 + upTo(often(0.2) ? 30 : 4))
  const hasBy = parts.some((part) => part.startsWith('BY'))
  // Positions that a period does not have would make a rule that never matches, for which dateutil searches for
  // minutes.
  const sizeMax = periodSize(parts, frequency)
  if (hasBy && !has('BYWEEKNO')) {
    add('BYSETPOS', 0.2, () => some(3, () => signed(Math.min(sizeMax, often(0.2) ? 40 : 4))))
  }
  const weekStart = upTo(7)
  if (often(0.5) || (frequency === 'WEEKLY' && has('BYSETPOS'))) parts.push(`WKST=${DAYS[weekStart]}`)
  const day = new Date(Date.UTC(1950 + upTo(90), upTo(12), 1 + upTo(31)))
  if (frequency === 'WEEKLY' && has('BYSETPOS')) {
    day.setUTCDate(day.getUTCDate() - ((day.getUTCDay() + 6 - weekStart + 7) % 7))
  }
  const two = (value: number): string => String(value).padStart(2, '0')
  const time = `${two(upTo(24))}${two(often(0.5) ? 0 : upTo(60))}${two(often(0.7) ? 0 : upTo(60))}`
  const end = upTo(3)
  return {
    rrule: parts.join(';'),
    dtstart: `${day.getUTCFullYear()}${two(day.getUTCMonth() + 1)}${two(day.getUTCDate())}T${time}`,
    zone: pick(ZONES),
    count: end === 0 ? 1 + upTo(25) : undefined,
    untilDays: end === 1 ? upTo(1_500) : undefined,
    isSubDaily,
  }
}
