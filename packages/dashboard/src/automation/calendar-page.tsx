import type { wire } from '@impresario/client'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useCalendar } from '../data/automation-queries.ts'
import { useSchedules } from '../data/queries.ts'
import { useAddress } from '../data/search.ts'
import { useText } from '../text/text.tsx'
import { Button, IconButton, LinkButton } from '../ui/button.tsx'
import { Failure, Loading, PageHead, Panel } from '../ui/parts.tsx'
import { statusWords } from '../ui/status.tsx'
import { dayKey, monthDays, monthOf, shiftedMonth } from './month.ts'

interface Entry {
  readonly key: string
  readonly at: number
  readonly title: string
  readonly to: '/runs/$id' | '/automations/$id' | '/jobs/$id' | '/schedules'
  readonly id: string
  /** How a run ended, or a firing of a schedule; nothing for what is still to come. */
  readonly status: string | undefined
}

const TONES: Readonly<Record<string, string>> = {
  succeeded: 'text-ok',
  failed: 'text-bad',
  quarantined: 'text-bad',
  running: 'text-info',
  canceled: 'text-faint',
  finished: 'text-ok',
}

/** So many coming firings of a schedule are known. */
const UPCOMING = 10

/** What a schedule did and will do in this time. */
function entriesOf({ name, upcoming, recent }: wire.ScheduleView): readonly Entry[] {
  return [
    ...recent.map(({ for: at, job_id: job }): Entry => {
      const key = `${name} ${at}`
      return job === null
        ? { key, at, title: name, to: '/schedules', id: name, status: 'skipped' }
        : { key, at, title: name, to: '/jobs/$id', id: job, status: 'finished' }
    }),
    ...upcoming.map((at): Entry => {
      return { key: `${name} ${at}`, at, title: name, to: '/schedules', id: name, status: undefined }
    }),
  ]
}

/** Past and coming runs of a month, in the viewer's time zone. */
export function CalendarPage(): ReactNode {
  const { t, language } = useText()
  const [search, change] = useAddress()
  const month = monthOf(search['month'], new Date())
  const days = monthDays(month)
  const [first, last] = [days[0], days.at(-1)]
  const from = (first?.getTime() ?? 0) / 1_000
  const until = (last === undefined ? 0 : last.getTime() + 86_400_000) / 1_000
  const { runs, firings, isPartial, isPending, error } = useCalendar(from, until)
  const { data: schedules = [] } = useSchedules()
  const hasMore = schedules.some(({ upcoming }) => upcoming.length >= UPCOMING && (upcoming.at(-1) ?? until) < until)
  const entries = byDay([
    ...schedules.flatMap(entriesOf).filter(({ at }) => at >= from && at < until),
    ...runs.map(({ id, created_at: at, title, status }): Entry => {
      return { key: id, at, title, to: '/runs/$id', id, status }
    }),
    ...firings.map(({ at, automation }): Entry => {
      const { id, title } = automation
      return { key: `${id} ${at}`, at, title, to: '/automations/$id', id, status: undefined }
    }),
  ])
  const name = new Intl.DateTimeFormat(language, { month: 'long', year: 'numeric' }).format(month)
  return (
    <>
      <PageHead title={t('calendar.title')} note={t('calendar.note')}>
        <LinkButton to="/automations">{t('nav.automations')}</LinkButton>
        <LinkButton to="/schedules">{t('nav.schedules')}</LinkButton>
        <span className="flex gap-2">
          <IconButton
            icon="left"
            label={t('calendar.before')}
            className="border border-line bg-panel"
            onClick={() => change({ month: shiftedMonth(month, -1) })}
          />
          <Button onClick={() => change({ month: undefined })}>{t('calendar.today')}</Button>
          <IconButton
            icon="right"
            label={t('calendar.after')}
            className="border border-line bg-panel"
            onClick={() => change({ month: shiftedMonth(month, 1) })}
          />
        </span>
      </PageHead>
      {error === null ? null : <Failure error={error} />}
      {isPartial || hasMore ? <p className="mb-3 text-xs text-warn">{t('calendar.partial')}</p> : null}
      <Panel
        flush
        title={<span className="inline-block first-letter:uppercase">{name}</span>}
        className="overflow-hidden"
      >
        {isPending ? <Loading /> : null}
        <Grid days={days} month={month} entries={entries} />
        <Agenda days={days} entries={entries} />
      </Panel>
    </>
  )
}

function byDay(entries: readonly Entry[]): ReadonlyMap<string, readonly Entry[]> {
  const days = new Map<string, Entry[]>()
  for (const entry of entries.toSorted((a, b) => a.at - b.at)) {
    const key = dayKey(new Date(entry.at * 1_000))
    const day = days.get(key)
    if (day === undefined) days.set(key, [entry])
    else day.push(entry)
  }
  return days
}

interface DaysProps {
  readonly days: readonly Date[]
  readonly entries: ReadonlyMap<string, readonly Entry[]>
}

const SHOWN_MAX = 5

function Grid({ days, month, entries }: DaysProps & { readonly month: Date }): ReactNode {
  const { t, language } = useText()
  const today = dayKey(new Date())
  const weekday = new Intl.DateTimeFormat(language, { weekday: 'short' })
  const weeks = Array.from({ length: days.length / 7 }, (_, week) => days.slice(week * 7, week * 7 + 7))
  return (
    <table className="hidden w-full table-fixed border-collapse md:table">
      <thead>
        <tr>
          {days.slice(0, 7).map((day) => (
            <th key={dayKey(day)} scope="col" className="border-b border-line px-2 py-1.5 text-left text-xs text-soft">
              {weekday.format(day)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeks.map((week) => (
          <tr key={dayKey(week[0] ?? month)}>
            {week.map((day) => {
              const of = entries.get(dayKey(day)) ?? []
              const isOther = day.getMonth() !== month.getMonth()
              return (
                <td key={dayKey(day)} className="h-28 border-b border-l border-line p-1.5 align-top first:border-l-0">
                  <span
                    className={`num inline-flex size-6 items-center justify-center rounded-full text-xs ${
                      dayKey(day) === today ? 'bg-fill font-semibold text-white' : isOther ? 'text-faint' : 'text-soft'
                    }`}
                  >
                    {day.getDate()}
                  </span>
                  {of.slice(0, SHOWN_MAX).map((entry) => (
                    <EntryLink key={entry.key} entry={entry} />
                  ))}
                  {of.length > SHOWN_MAX ? (
                    <span className="block px-1 text-xs text-faint">
                      {t('calendar.more', { n: of.length - SHOWN_MAX })}
                    </span>
                  ) : null}
                </td>
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** On a phone: the days on which something is. */
function Agenda({ days, entries }: DaysProps): ReactNode {
  const { t, language } = useText()
  const format = new Intl.DateTimeFormat(language, { weekday: 'long', day: 'numeric', month: 'long' })
  const full = days.filter((day) => entries.has(dayKey(day)))
  return (
    <div className="md:hidden">
      {full.length === 0 ? <p className="px-4 py-5 text-soft">{t('calendar.none')}</p> : null}
      {full.map((day) => (
        <section key={dayKey(day)} className="border-b border-line px-4 py-2.5 last:border-b-0">
          <h3 className="text-xs font-medium text-soft first-letter:uppercase">{format.format(day)}</h3>
          {(entries.get(dayKey(day)) ?? []).map((entry) => (
            <EntryLink key={entry.key} entry={entry} />
          ))}
        </section>
      ))}
    </div>
  )
}

function EntryLink({ entry: { at, title, to, id, status } }: { readonly entry: Entry }): ReactNode {
  const { t, language } = useText()
  const time = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(
    at * 1_000,
  )
  const words = status === undefined ? t('calendar.planned') : statusWords(t, status)
  const place = to === '/schedules' ? { to, search: { entry: id } } : { to, params: { id } }
  return (
    <Link
      {...place}
      title={`${time} ${title} (${words})`}
      className="flex min-w-0 items-baseline gap-1.5 rounded px-1 py-0.5 text-xs hover:bg-raise"
    >
      <span aria-hidden className={status === undefined ? 'text-accent' : (TONES[status] ?? 'text-soft')}>
        {status === undefined ? '○' : '●'}
      </span>
      <span className="num text-soft">{time}</span>
      <bdi className="truncate">{title}</bdi>
      <span className="sr-only">{words}</span>
    </Link>
  )
}
