import type { wire } from '@impresario/client'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useSchedule } from '../data/entry-queries.ts'
import { absolute, duration, zoneTime } from '../data/format.ts'
import { EntryDialog, EntryFact, Subjects } from '../event/entry-dialog.tsx'
import { triggerWords } from '../text/schedule-words.ts'
import { useText } from '../text/text.tsx'
import { Fact, Time } from '../ui/parts.tsx'

/** A schedule: when it fires, when it will next, and what became of its last firings. */
export function ScheduleEntry({ id, close }: { readonly id: string; readonly close: () => void }): ReactNode {
  const { t, language } = useText()
  const { data, error } = useSchedule(id)
  return (
    <EntryDialog
      id={id}
      entry={data}
      error={error}
      close={close}
      title={({ name }) => name}
      below={(schedule) => (
        <div className="mb-4 grid items-start gap-x-6 gap-y-4 sm:grid-cols-2">
          <Upcoming schedule={schedule} />
          <Recent schedule={schedule} />
        </div>
      )}
    >
      {(schedule) => (
        <>
          <EntryFact name={t('schedule.when')} value={triggerWords(schedule.trigger, t, language)} />
          <EntryFact name={t('schedule.zone')} value={schedule.timezone} />
          <EntryFact name={t('schedule.missed')} value={t(`schedule.missed.${schedule.misfire}`)} />
          <Subjects of={[{ kind: 'blueprint', id: schedule.blueprint }]} />
          <EntryFact name={t('entry.owner')} value={schedule.client} />
          {schedule.paused_at === null ? null : (
            <Fact name={t('schedule.paused')}>
              <Time at={schedule.paused_at} />
            </Fact>
          )}
          {schedule.paused_by === null ? null : <EntryFact name={t('schedule.pausedBy')} value={schedule.paused_by} />}
        </>
      )}
    </EntryDialog>
  )
}

interface Shown {
  readonly schedule: wire.ScheduleView
}

const ROW = 'flex flex-wrap items-baseline justify-between gap-x-3 border-b border-line py-1.5 last:border-b-0'

function Upcoming({ schedule: { upcoming, timezone, enabled } }: Shown): ReactNode {
  const { t, language } = useText()
  return (
    <section aria-label={t('schedule.upcoming')}>
      <h3 className="mb-1 font-semibold">{t('schedule.upcoming')}</h3>
      {upcoming.length === 0 ? <p className="text-soft">{t(enabled ? 'schedule.pausedNow' : 'schedule.off')}</p> : null}
      <ol>
        {upcoming.map((at) => (
          <li key={at} className={ROW}>
            <span className="num" title={absolute(at, language)}>
              {zoneTime(at, timezone, language)}
            </span>
            <Time at={at} className="text-xs text-faint" />
          </li>
        ))}
      </ol>
    </section>
  )
}

/** A firing that was served later than this says so. */
const LATE_SECONDS = 60

function Recent({ schedule: { recent, timezone } }: Shown): ReactNode {
  const { t, language } = useText()
  return (
    <section aria-label={t('schedule.recent')}>
      <h3 className="mb-1 font-semibold">{t('schedule.recent')}</h3>
      {recent.length === 0 ? <p className="text-soft">{t('schedule.noRecent')}</p> : null}
      <ol>
        {recent.map(({ for: due, at, job_id: job, skipped }) => (
          <li key={`${due} ${at}`} className={ROW}>
            {job === null ? (
              <span className="num text-faint line-through">{zoneTime(due, timezone, language)}</span>
            ) : (
              <Link to="/jobs/$id" params={{ id: job }} className="num text-accent hover:underline">
                {zoneTime(due, timezone, language)}
              </Link>
            )}
            <Time at={due} className="text-xs text-faint" />
            {skipped === null ? null : (
              <span className="basis-full text-xs text-warn">{t(`schedule.skipped.${skipped}`)}</span>
            )}
            {job !== null && at - due > LATE_SECONDS ? (
              <span className="basis-full text-xs text-soft">
                {t('schedule.late', { span: duration((at - due) * 1_000, language) })}
              </span>
            ) : null}
          </li>
        ))}
      </ol>
    </section>
  )
}
