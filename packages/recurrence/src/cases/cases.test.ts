import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { BEGINNING, occurrencesAfter } from '../series.ts'
import { trigger } from '../trigger.ts'
import { Zones } from '../zone.ts'
import type { Gap } from '../zone.ts'

interface Case {
  readonly name: string
  readonly timezone: string
  readonly after?: string
  readonly expected: readonly string[] | null
  readonly expect_error?: boolean
  readonly flags: readonly string[]
  readonly alternatives?: Readonly<Record<string, readonly string[]>>
}

interface CronCase extends Case {
  readonly expr: string
}

interface RuleCase extends Case {
  readonly rrule: string
  readonly dtstart: string
  readonly exdate?: readonly string[]
  readonly rdate?: readonly string[]
  readonly take: number
  readonly complete: boolean
}

/** Boundary: the files are ours and have this shape. */
function casesOf<Kind>(file: string): readonly Kind[] {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly cases: readonly Kind[] }).cases
}

const zones = new Zones()
const instants = (times: readonly string[]): readonly number[] => times.map((time) => Date.parse(time))

function cronTimes({ expr, timezone, after = '' }: CronCase, gap?: Gap): readonly number[] {
  const { series } = trigger({ kind: 'cron', cron: expr, timezone, gap }, zones)
  return occurrencesAfter(series, Date.parse(after), 5).map(({ at }) => at)
}

function ruleTimes(one: RuleCase, gap?: Gap): readonly number[] {
  const { rrule, dtstart, timezone, exdate: exdates, rdate: rdates, after, take, complete } = one
  const { series } = trigger({ kind: 'rrule', rrule, dtstart, exdates, rdates, timezone, gap }, zones)
  // Two more, to check that a finite series ends.
  const count = complete ? take + 2 : take
  return occurrencesAfter(series, after === undefined ? BEGINNING : Date.parse(after), count).map(({ at }) => at)
}

/** Our choice where several interpretations are possible; docs/reference/recurrence.md documents it. */
const CHOSEN: Readonly<Record<string, string>> = {
  'ny-0230-gap': 'debian_cron (gap: right after the gap, fold: once)',
  'lordhowe-0215-half-hour-gap': 'debian_cron (gap: right after the gap, fold: once)',
  'd-weekno-1-all-days': 'weekday_of_dtstart',
  'tz-ny-monthly-2sun-march': 'gap_skipped',
  'tz-lordhowe-0215-gap-half-hour': 'gap_skipped',
  'tz-london-0130-gap': 'gap_skipped',
  'tz-troll-two-hour-dst': 'gap_skipped',
  'tz-st-johns': 'gap_skipped',
  'tz-ny-minutely-30-gap': 'elapsed_time',
  'tz-ny-minutely-30-fold': 'elapsed_time',
}

/** The data of the runtime determine whether the old or the new rules of Chișinău apply. */
function accepted({ name, expected, alternatives = {}, flags }: Case): readonly (readonly number[])[] {
  const chosen = CHOSEN[name]
  const main = chosen === undefined ? (expected ?? []) : (alternatives[chosen] ?? [])
  const newer = flags.includes('tzdata_sensitive') ? alternatives['tzdata_2026c'] : undefined
  return [main, ...(newer === undefined ? [] : [newer])].map(instants)
}

describe('[K-03] cases of cron', () => {
  const cases = casesOf<CronCase>('cron-cases.json')

  test.for(cases.filter((one) => one.expect_error === true || one.flags.includes('never_matches')))(
    'refuses $name',
    (one) => {
      expect(() => cronTimes(one)).toThrow(/cron/)
    },
  )

  test.for(cases.filter((one) => one.expected !== null && !one.flags.includes('never_matches')))('$name', (one) => {
    expect(accepted(one)).toContainEqual(cronTimes(one))
  })

  test.for(cases.filter(({ name }) => CHOSEN[name] !== undefined))('$name, shifted instead', (one) => {
    expect(cronTimes(one, 'shift')).toEqual(instants(one.expected ?? []))
  })
})

describe('[K-03] cases of RRULE', () => {
  const cases = casesOf<RuleCase>('rrule-cases.json')

  test.for(cases)('$name', (one) => {
    const times = ruleTimes(one)
    const isPrefix = !one.complete
    const answers = accepted(one).map((answer) => (isPrefix ? answer.slice(0, times.length) : answer))
    expect(answers).toContainEqual(isPrefix ? times.slice(0, answers[0]?.length) : times)
  })

  test.for(cases.filter(({ flags, name }) => flags.includes('gap') && CHOSEN[name] === 'gap_skipped'))(
    '$name, shifted instead',
    (one) => {
      expect(ruleTimes(one, 'shift')).toEqual(instants(one.expected ?? []))
    },
  )
})
