import { describe, expect, test } from 'vitest'
import type { DataObject } from '@impresario/protocol'
import { ADMIN, ANNA, BEN, Office } from './office.fixture.ts'

const DAY = 86_400_000
const HOLIDAYS = { entries: [{ date: '2026-03-04', label: 'Founders day' }] }
const DAILY = { triggers: [{ cron: '0 9 * * *' }] }
const BUSINESS = { entries: [{ weekdays: ['mon', 'tue', 'wed', 'thu', 'fri'] }] }

async function times(office: Office, id: string): Promise<readonly string[]> {
  const runs = await office.runs(id)
  return runs.map(({ trigger }) => new Date(trigger.scheduledFor ?? 0).toISOString().slice(0, 10))
}

describe('[K-14] named calendars', () => {
  test('exclude days, and each occurrence that does not run is logged with the calendar and its label', async () => {
    const office = new Office()
    await office.automations.calendars.put('holidays', HOLIDAYS, ANNA)
    await office.automations.calendars.put('business_days', BUSINESS, ANNA)
    const calendars = { exclude: ['holidays'], only: ['business_days'] }
    const { id } = await office.create({ ...DAILY, calendars })
    await office.after(9 * DAY, DAY / 4)
    expect(await times(office, id)).toEqual(['02', '03', '05', '06', '09', '10'].map((day) => `2026-03-${day}`))
    expect(await office.skips(id)).toMatchObject([
      { reason: 'excluded', calendar: 'holidays', label: 'Founders day', count: 1, first: '2026-03-04T09:00:00Z' },
      { reason: 'excluded', calendar: 'business_days', first: '2026-03-07T09:00:00Z' },
      { reason: 'excluded', calendar: 'business_days', last: '2026-03-08T09:00:00Z' },
    ])
  })

  test('maintenance windows by a rule, and an iCalendar file', async () => {
    const office = new Office()
    const { calendars } = office.automations
    const nightly = { rrule: 'FREQ=DAILY', dtstart: '2026-03-01T22:00:00', duration_seconds: 7_200, label: 'backup' }
    await calendars.put('maintenance', { timezone: 'UTC', entries: [nightly] }, ANNA)
    const event = ['BEGIN:VEVENT', 'UID:1', 'DTSTART;VALUE=DATE:20260303', 'SUMMARY:Carnival', 'END:VEVENT']
    const broken = ['BEGIN:VEVENT', 'UID:2', 'DTSTART:rubbish', 'END:VEVENT']
    const ics = ['BEGIN:VCALENDAR', 'VERSION:2.0', ...event, ...broken, 'END:VCALENDAR'].join('\r\n')
    const { record, unread } = await calendars.put('ics', { ics }, ANNA)
    expect(record.spec.entries).toHaveLength(1)
    expect(unread).toEqual([expect.stringMatching(/^Line 10 of the calendar file is wrong: "rubbish" is no time/)])
    const february = broken.map((line) => line.replace('rubbish', '20260230'))
    const many = [...event, ...february, ...Array.from({ length: 40 }, () => broken).flat()]
    const long = ['BEGIN:VCALENDAR', 'VERSION:2.0', ...many, 'END:VCALENDAR'].join('\n')
    const told = (await calendars.put('long', { ics: long }, ANNA)).unread
    expect([told[0], told.at(-1), told.length]).toEqual([
      expect.stringMatching(/^Line 8: .*no such day/),
      '21 more events could not be read.',
      21,
    ])
    const { id } = await office.create({
      triggers: [{ cron: '0 */6 * * *' }, { cron: '0 23 * * *' }],
      calendars: { exclude: ['maintenance', 'ics'] },
      overlap: 'parallel',
    })
    await office.after(2 * DAY, DAY / 24)
    expect(await times(office, id)).toEqual(['2026-03-02', '2026-03-02', '2026-03-04', '2026-03-04'])
    const skips = await office.skips(id)
    expect(skips.map(({ label, count }) => [label, count])).toEqual([
      ['backup', 1],
      ['Carnival', 4],
      ['backup', 1],
    ])
  })

  test('a change reaches the automations that use it at once, also one that had no time left', async () => {
    const office = new Office()
    const { calendars } = office.automations
    await calendars.put('busy', { entries: [{ date: '2026-03-02', until: '2026-03-20' }] }, ANNA)
    const { id, next } = await office.create({ ...DAILY, calendars: { exclude: ['busy'] } })
    expect(next?.scheduledFor).toBe(Date.parse('2026-03-21T09:00:00Z'))
    await calendars.put('busy', { entries: [{ date: '2026-03-02' }] }, ANNA)
    await office.settle()
    expect((await office.automations.read(id, ANNA)).next?.scheduledFor).toBe(Date.parse('2026-03-03T09:00:00Z'))
    await office.after(2 * DAY, DAY / 24)
    expect(await times(office, id)).toEqual(['2026-03-03'])
    expect(office.log.errors).toEqual([])
  })

  test('belong to their owner, are refused with every problem, and stay while they are used', async () => {
    const office = new Office()
    const { calendars } = office.automations
    await calendars.put('holidays', HOLIDAYS, ANNA)
    await expect(calendars.read('holidays', BEN)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const body: DataObject = { ...DAILY, calendars: { exclude: ['holidays'] } }
    await expect(office.create(body, BEN)).rejects.toThrow('no calendar "holidays"')
    await expect(office.create({ ...body, calendars: { only: ['nope'] } })).rejects.toThrow('no calendar "nope"')
    const { id } = await office.create(body)
    await office.automations.pause(id, ANNA)
    await expect(calendars.remove('holidays', ANNA)).rejects.toMatchObject({ code: 'CONFLICT' })
    await office.automations.cancel(id, ANNA)
    await calendars.remove('holidays', ANNA)
    expect((await calendars.list(undefined, 10)).items).toEqual([])
    const { items } = await office.automations.audit({ owner: 'anna', subject: 'calendar/holidays', limit: 10 })
    expect(items.map(({ action }) => action)).toEqual(['calendar.deleted', 'calendar.created'])
    await expect(calendars.put('9', {}, ADMIN)).rejects.toThrow('name: ')
    const wrong = { entries: [1, { date: 'x' }, { weekdays: ['never'] }, { start: '2026' }, { rrule: 'FREQ=DAILY' }] }
    await expect(calendars.put('wrong', wrong, ANNA)).rejects.toThrow(
      /entries\[0\].*entries\[2\].*entries\[4\].dtstart/s,
    )
    await expect(calendars.put('wrong', { entries: [{ date: 'x' }] }, ANNA)).rejects.toMatchObject({
      code: 'INPUT_REFUSED',
    })
    const long = { entries: Array.from({ length: 4_000 }, () => ({ date: '2026-03-04', label: 'x'.repeat(150) })) }
    await expect(calendars.put('long', long, ANNA)).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
  })
})
