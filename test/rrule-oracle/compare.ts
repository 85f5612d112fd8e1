import { spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Zones, isoInstant, occurrencesAfter, recurrence } from '@impresario/recurrence'
import type { Zone } from '@impresario/recurrence'
import { chanceOf, randomRule } from './random-rule.ts'
import type { RandomRule } from './random-rule.ts'

const ORACLE = fileURLToPath(new URL('dateutil_oracle.py', import.meta.url))
const TAKE = 30
const YEARS = 12
const DAY_MS = 86_400_000

export interface Comparison {
  readonly compared: number
  /** Rules for which dateutil did not respond in time. */
  readonly tooSlow: number
  /** The total number of occurrences that agreed. */
  readonly occurrences: number
  readonly differences: readonly string[]
}

/** The Python that has dateutil: the one on the path, or Debian's own. */
function pythonWithDateutil(): string | undefined {
  return ['python3', '/usr/bin/python3'].find(
    (python) => spawnSync(python, ['-c', 'import dateutil.rrule'], { stdio: 'ignore' }).status === 0,
  )
}

/** Generates rules from a seed, evaluates them with dateutil and our code, and reports differences. */
export async function compareWithDateutil(seed: number, count: number): Promise<Comparison> {
  const python = pythonWithDateutil()
  if (python === undefined) throw new Error('python3-dateutil is missing: apt-get install python3-dateutil')
  const oracle = spawn(python, [ORACLE], { stdio: ['pipe', 'pipe', 'inherit'] })
  const answers = createInterface({ input: oracle.stdout })[Symbol.asyncIterator]()
  const chance = chanceOf(seed)
  const rules = Array.from({ length: count }, () => randomRule(chance))
  for (const rule of rules) {
    oracle.stdin.write(
      `${JSON.stringify({ rrule: rule.rrule, dtstart: rule.dtstart, last: stamp(lastOf(rule)), take: TAKE + 10 })}\n`,
    )
  }
  oracle.stdin.end()
  const zones = new Zones()
  const differences: string[] = []
  let [occurrences, tooSlow] = [0, 0]
  for (const [index, rule] of rules.entries()) {
    const answer = await answers.next()
    if (answer.done === true) throw new Error(`dateutil ended at rule ${index} of seed ${seed}: ${rule.rrule}`)
    const answered = JSON.parse(answer.value) as string[] | null
    if (answered === null) {
      tooSlow += 1
      continue
    }
    const { expected, actual } = judge(rule, answered.map(localOf), zones)
    occurrences += expected.length
    if (JSON.stringify(expected) === JSON.stringify(actual)) continue
    differences.push(
      `seed ${seed} rule ${index}: ${describe(rule)}\n  dateutil ${show(expected)}\n  ours     ${show(actual)}`,
    )
  }
  return { compared: count - tooSlow, tooSlow, occurrences, differences }
}

function describe({ rrule, dtstart, zone, count, untilDays }: RandomRule): string {
  return `${rrule} from ${dtstart} in ${zone}, COUNT ${count}, UNTIL after ${untilDays} days`
}

function show(times: readonly number[]): string {
  return `${times.length}: ${times.slice(0, 8).map(isoInstant).join(' ')}`
}

/** The two results, each cut to the part that can be compared. */
function judge(
  rule: RandomRule,
  locals: readonly number[],
  zones: Zones,
): { expected: readonly number[]; actual: readonly number[] } {
  const start = localOf(rule.dtstart)
  const until = rule.untilDays === undefined ? undefined : start + rule.untilDays * DAY_MS
  const end = [
    ...(rule.count === undefined ? [] : [`COUNT=${rule.count}`]),
    ...(until === undefined ? [] : [`UNTIL=${stamp(until)}Z`]),
  ]
  const { series } = recurrence(
    { rrule: [rule.rrule, ...end].join(';'), dtstart: rule.dtstart },
    zones.named(rule.zone),
  )
  const ours = occurrencesAfter(series, Number.NEGATIVE_INFINITY, TAKE)
  const clock = clockOf(rule.zone)
  const resolved = locals.flatMap((local) => firstInstant(clock, local))
  const counted = rule.count === undefined ? resolved : resolved.slice(0, rule.count)
  const theirs = counted.filter((at) => until === undefined || at <= until)
  // Hourly and shorter rules count real time here and local time in dateutil: they agree up to the first clock change.
  const horizon = rule.isSubDaily
    ? Math.min(lastOf(rule) - DAY_MS, firstChange(zones.named(rule.zone), start))
    : lastOf(rule) - DAY_MS
  // Some of the last ones may be in a gap, so we requested a few more.
  return {
    expected: theirs.filter((at) => at < horizon).slice(0, TAKE),
    actual: ours.map(({ at }) => at).filter((at) => at < horizon),
  }
}

/** dateutil checks every day, so a search through centuries would take minutes. */
function lastOf({ dtstart }: RandomRule): number {
  return localOf(dtstart) + YEARS * 365 * DAY_MS
}

/** The first clock change after a local time, up to the end of the comparison. */
function firstChange(zone: Zone, local: number): number {
  const start = zone.instantOf(local, { gap: 'shift', fold: 'first' })
  const limit = local + YEARS * 366 * DAY_MS
  let stretch = zone.stretchAt(start)
  const { offsetMs } = stretch
  while (stretch.offsetMs === offsetMs && stretch.to < limit) stretch = zone.stretchAt(stretch.to)
  return stretch.offsetMs === offsetMs ? limit : stretch.from
}

/** The offset of a zone at an instant, computed by `Intl` alone. */
function clockOf(zone: string): (at: number) => number {
  const known = formats.get(zone) ?? new Intl.DateTimeFormat('sv-SE', { ...STYLE, timeZone: zone })
  formats.set(zone, known)
  return (at) => Date.parse(`${known.format(at).replace(' ', 'T')}Z`) - Math.floor(at / 1_000) * 1_000
}

const formats = new Map<string, Intl.DateTimeFormat>()
/** In Swedish that is 2026-03-29 02:30:00. */
const STYLE = { dateStyle: 'short', timeStyle: 'medium' } as const

/** The first instant with this local time; none in a gap. */
function firstInstant(clock: (at: number) => number, local: number): readonly number[] {
  const offsets = [clock(local - DAY_MS), clock(local + DAY_MS)]
  const instants = offsets.map((offset) => local - offset).filter((at) => at + clock(at) === local)
  return instants.length === 0 ? [] : [Math.min(...instants)]
}

function localOf(text: string): number {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)$/.exec(text) ?? []
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map(Number)
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

function stamp(local: number): string {
  return new Date(local).toISOString().replaceAll(/[-:]|\.\d+Z/g, '')
}
