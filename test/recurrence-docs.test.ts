import { readFileSync } from 'node:fs'
import { LIMITS, Zones, preview, trigger, withImpliedStart } from '@impresario/recurrence'
import type { TriggerSpec } from '@impresario/recurrence'
import { describe, expect, test } from 'vitest'

const PAGE = readFileSync(new URL('../docs/reference/recurrence.md', import.meta.url), 'utf8')
const timezone = 'Europe/Chisinau'
const zones = new Zones()

/** The rows of a table whose header begins with this word, as cells. */
function rowsUnder(head: string): readonly (readonly string[])[] {
  const [, table = ''] = PAGE.split(new RegExp(`^\\| ${head} \\|.*\\n\\|[-|]*\\|\\n`, 'm'))
  return (table.split('\n\n')[0] ?? '').split('\n').map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

function shown(spec: TriggerSpec, after: number): readonly [words: string, times: string] {
  const { words, firings } = preview({ triggers: [trigger(spec, zones)], after, count: 2 })
  return [words.join(','), firings.map(({ local }) => local).join(', ')]
}

describe('[K-03] the examples of the page on recurrence', () => {
  test.for(rowsUnder('expression'))('%s', ([cron = '', words, times]) => {
    const after = Date.parse('2026-01-01T00:00:00+02:00')
    expect(shown({ kind: 'cron', cron, timezone }, after)).toEqual([`${words}, ${timezone}`, times])
  })

  test.for(rowsUnder('rule'))('rule %s', ([rrule = '', words, times]) => {
    const start = Date.parse('2026-01-31T09:00:00+02:00')
    const spec = withImpliedStart(rrule, start, zones.named(timezone))
    expect(shown({ kind: 'rrule', ...spec, timezone }, 0)).toEqual([
      `${words}, from 2026-01-31 09:00:00, ${timezone}`,
      times,
    ])
  })

  test('are there', () => {
    expect(rowsUnder('expression').length).toBeGreaterThan(5)
    expect(rowsUnder('rule').length).toBeGreaterThan(5)
  })
})

test('[K-03] the limits on the page are those of the code', () => {
  const said = rowsUnder('what').map(([, limit = '']) =>
    [...limit.matchAll(/[\d,]*\d/g)].map(([digits]) => Number(digits.replaceAll(',', ''))),
  )
  const {
    cronLength,
    rruleLength,
    count,
    dates,
    entries,
    rules,
    icsLength,
    icsEvents,
    catchUp,
    preview: firings,
  } = LIMITS
  expect(said).toEqual([
    [cronLength],
    [rruleLength],
    [count],
    [dates],
    [entries, rules],
    [icsLength, icsEvents],
    [catchUp],
    [firings],
  ])
})
