import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from './run-cli.fixture.ts'

interface Answer {
  readonly times: readonly string[]
  readonly words: string
  readonly notes: readonly { readonly at: string; readonly note: string }[]
  readonly left_out: readonly { readonly local: string; readonly reason: string }[]
  readonly complete: boolean
}

async function asked(...args: readonly string[]): Promise<Answer> {
  const { code, stdout, stderr } = await runCli(['preview', ...args, '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Answer
}

describe('[K-03] impresario preview', () => {
  test('shows the times of a cron expression after a time', async () => {
    const zone = ['--timezone', 'Europe/Chisinau', '--after', '2025-06-06T10:00:00+03:00', '--count', '2']
    const { times, words, complete } = await asked('--cron', '0 9 * * 1-5', ...zone)
    expect(times).toEqual(['2025-06-09T06:00:00Z', '2025-06-10T06:00:00Z'])
    expect(words).toBe('At 09:00, Monday to Friday, Europe/Chisinau')
    expect(complete).toBe(false)
  })

  test('shows a rule from its start, with times left out and added', async () => {
    const rule = ['--rrule', 'FREQ=WEEKLY;BYDAY=MO;COUNT=4', '--dtstart', '2025-03-24T09:00:00']
    const changes = ['--exdate', '2025-03-31T09:00:00', '--exdate', '2025-04-14', '--rdate', '2025-04-01T12:00:00']
    const { times, complete } = await asked(...rule, ...changes, '--timezone', 'Europe/Chisinau', '--count', '9')
    expect(times).toEqual(['2025-03-24T07:00:00Z', '2025-04-01T09:00:00Z', '2025-04-07T06:00:00Z'])
    expect(complete).toBe(true)
  })

  test('shows a rule without a start from now on, at full hours', async () => {
    const { times } = await asked('--rrule', 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17', '--after', '2025-01-01T00:00:00Z')
    expect(times[0]).toBe('2025-01-31T17:00:00Z')
    expect(times).toHaveLength(5)
  })

  test('shows a single time, whose offset wins over the zone, even if it is over', async () => {
    const once = ['--once', '2025-12-25T09:00:00+02:00', '--timezone', 'America/New_York']
    expect((await asked(...once)).times).toEqual(['2025-12-25T07:00:00Z'])
    expect((await asked('--once', '2025-12-25T09:00', '--timezone', 'Asia/Tokyo')).times).toEqual([
      '2025-12-25T00:00:00Z',
    ])
    expect((await asked(...once, '--after', '2026-01-01')).times).toEqual([])
  })

  test('shows nothing of a rule that never happens, and of a count of 0', async () => {
    const rule = ['--rrule', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', '--dtstart', '2025-01-01T00:00:00']
    expect(await asked(...rule)).toMatchObject({ times: [], complete: true })
    expect(await asked('--cron', '* * * * *', '--count', '0')).toMatchObject({ times: [] })
  })

  test('shows clock changes, and follows --gap', async () => {
    const rule = [
      '--rrule',
      'FREQ=DAILY',
      '--dtstart',
      '2026-03-28T02:30:00',
      '--timezone',
      'Europe/Berlin',
      '--count',
      '2',
    ]
    const dropped = await asked(...rule)
    expect(dropped.times).toEqual(['2026-03-28T01:30:00Z', '2026-03-30T00:30:00Z'])
    expect(dropped.left_out).toEqual([
      { local: '2026-03-29T02:30:00', reason: '02:30 does not exist on that day: the clock goes from 02:00 to 03:00.' },
    ])
    const shifted = await asked(...rule, '--gap', 'shift')
    expect(shifted.times).toEqual(['2026-03-28T01:30:00Z', '2026-03-29T01:30:00Z'])
    expect(shifted.notes).toHaveLength(1)
  })

  test('shows words and a table to people', async () => {
    const after = ['--after', '2025-03-09T00:00:00Z', '--timezone', 'America/New_York', '--count', '1']
    const { code, stdout } = await runCli(['preview', '--cron', '30 2 * * *', ...after])
    expect(code).toBe(0)
    expect(stdout).toContain('At 02:30 every day, America/New_York')
    expect(stdout).toMatch(/Sun 2025-03-09 03:00:00-04:00 {2}2025-03-09T07:00:00Z {2}02:30 does not exist/)
  })
})

describe('[K-03] impresario preview refuses', () => {
  test.for([
    ['a wrong field', ['--cron', '61 * * * *'], 1, /minute "61".*not in 0–59/],
    ['an expression that never matches', ['--cron', '0 0 30 2 *'], 1, /never matches/],
    ['a wrong rule', ['--rrule', 'FREQ=DAILY;BYDAY=XX'], 1, /BYDAY/],
    ['a wrong start', ['--rrule', 'FREQ=DAILY', '--dtstart', '2025-02-30'], 1, /dtstart/],
    ['a wrong time', ['--once', 'soon'], 1, /once "soon" is not a time/],
    ['a wrong zone', ['--cron', '* * * * *', '--timezone', 'Mars/Olympus'], 1, /no time zone/],
    ['a wrong --after', ['--cron', '* * * * *', '--after', 'soon'], 1, /after "soon"/],
    ['nothing', [], 2, /Use exactly one of --cron, --rrule and --once/],
    ['two of them', ['--cron', '* * * * *', '--once', '2026-01-01'], 2, /Use exactly one of/],
    ['dates without a rule', ['--cron', '* * * * *', '--exdate', '2026-01-01'], 2, /go with --rrule only/],
    ['too many', ['--cron', '* * * * *', '--count', '10001'], 2, /--count must be from 0 to 10000/],
  ] as const)('%s', async ([, args, exitCode, message]) => {
    const { code, stdout, stderr } = await runCli(['preview', ...args, '--json'])
    expect(code).toBe(exitCode)
    expect(stdout).toBe('')
    expect((JSON.parse(stderr) as { readonly error: string }).error).toMatch(message)
  })
})

describe('[K-14] impresario preview with calendars', () => {
  let directory = ''
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'impresario-preview-'))
    const lines = [
      'BEGIN:VCALENDAR',
      'BEGIN:VEVENT',
      'DTSTART;VALUE=DATE:20261225',
      'SUMMARY:Christmas',
      'END:VEVENT',
      'END:VCALENDAR',
    ]
    writeFileSync(join(directory, 'holidays.ics'), lines.join('\r\n'))
    writeFileSync(join(directory, 'broken.ics'), 'hello')
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  const cron = ['--cron', '0 9 * * *', '--after', '2026-12-24T12:00:00Z', '--count', '1']

  test('leaves out what a file has, or all else', async () => {
    const file = join(directory, 'holidays.ics')
    const excluded = await asked(...cron, '--exclude', file)
    expect(excluded.times).toEqual(['2026-12-26T09:00:00Z'])
    expect(excluded.left_out).toEqual([
      { local: '2026-12-25T09:00:00+00:00', reason: 'In the calendar "holidays.ics": Christmas.' },
    ])
    expect((await asked(...cron, '--only', file)).times).toEqual(['2026-12-25T09:00:00Z'])
  })

  test('reads lines that are folded inside of a character, as RFC 5545 allows', async () => {
    const event = [
      'BEGIN:VCALENDAR',
      'BEGIN:VEVENT',
      'DTSTART;VALUE=DATE:20261225',
      'SUMMARY:Рождество 🎄',
      'END:VEVENT',
    ]
    const bytes = Buffer.from([...event, 'END:VCALENDAR'].join('\r\n'))
    const [letter, tree] = [bytes.indexOf('о'), bytes.indexOf('🎄')]
    const parts = [bytes.subarray(0, letter + 1), bytes.subarray(letter + 1, tree + 2), bytes.subarray(tree + 2)]
    const folded = parts.map((part) => part.toString('latin1')).join('\r\n ')
    const file = join(directory, 'folded.ics')
    writeFileSync(file, Buffer.from(folded, 'latin1'))
    expect((await asked(...cron, '--exclude', file)).left_out).toEqual([
      { local: '2026-12-25T09:00:00+00:00', reason: 'In the calendar "folded.ics": Рождество 🎄.' },
    ])
  })

  test('says what is wrong with a file', async () => {
    const { code, stderr } = await runCli(['preview', ...cron, '--exclude', join(directory, 'broken.ics')])
    expect(code).toBe(1)
    expect(stderr).toMatch(/The file is no calendar/)
    expect((await runCli(['preview', ...cron, '--only', join(directory, 'none.ics')])).code).toBe(2)
  })

  test.each([
    ['an option that is not there', ['--bogus']],
    ['a number that is none', ['--count', 'abc', '--cron', '@daily']],
    ['a word too many', ['--cron', '@daily', 'extra']],
  ])('reports %s as JSON too', async (_, args) => {
    const { code, stdout, stderr } = await runCli(['preview', ...args, '--json'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(JSON.parse(stderr)).toMatchObject({ code: 'USAGE', hint: expect.stringContaining('--help') as string })
  })
})
