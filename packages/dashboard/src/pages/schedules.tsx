import type { wire } from '@impresario/client'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { usePost, useSchedules } from '../data/queries.ts'
import { useIsAdmin } from '../data/session.ts'
import { useOpenEntry } from '../event/entry-dialog.tsx'
import { EntryLink, useEntryKeys } from '../event/entry-row.tsx'
import { ScheduleEntry } from '../schedule/schedule-entry.tsx'
import { triggerWords } from '../text/schedule-words.ts'
import { useText } from '../text/text.tsx'
import type { TextKey } from '../text/translate.ts'
import { Button, LinkButton } from '../ui/button.tsx'
import { Code, Empty, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { useSay } from '../ui/toast.tsx'

/** Jobs that start by the calendar, as the file of schedules says. */
export function SchedulesPage(): ReactNode {
  const { t } = useText()
  const [open, close] = useOpenEntry()
  useEntryKeys()
  const { data = [], error, isPending, refetch } = useSchedules()
  return (
    <>
      <PageHead title={t('nav.schedules')} note={t('schedules.note')}>
        <LinkButton to="/automations/calendar">{t('calendar.title')}</LinkButton>
      </PageHead>
      {error === null ? null : <Failure error={error} retry={refetch} />}
      <Panel flush className="overflow-hidden">
        {isPending ? <Loading /> : null}
        {!isPending && data.length === 0 ? (
          <Empty icon="clock" title={t('schedules.none')}>
            <p className="mb-3">{t('schedules.noneNote')}</p>
            <Code>SCHEDULES_CONFIG_PATH=schedules.toml</Code>
          </Empty>
        ) : null}
        <ul>
          {data.map((schedule) => (
            <Schedule key={schedule.name} schedule={schedule} />
          ))}
        </ul>
      </Panel>
      {open === undefined ? null : <ScheduleEntry key={open} id={open} close={close} />}
    </>
  )
}

function Schedule({ schedule }: { readonly schedule: wire.ScheduleView }): ReactNode {
  const { t, language } = useText()
  // Only they may.
  const isAdmin = useIsAdmin()
  const { name, blueprint, enabled, next_at: next, last_at: last, last_job_id: job, timezone } = schedule
  const { paused_at: paused } = schedule
  return (
    <li className="relative flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-3 last:border-b-0 hover:bg-raise">
      <div className="min-w-0 flex-1 basis-60">
        <p className="flex items-center gap-2">
          <EntryLink id={name} className="truncate">
            <bdi>{name}</bdi>
          </EntryLink>
          <StatusBadge status={!enabled ? 'off' : paused === null ? 'active' : 'paused'} />
        </p>
        <p className="mt-0.5 text-xs text-soft">
          <Link to="/blueprints/$name" params={{ name: blueprint }} className="relative z-1 hover:underline">
            <bdi>{blueprint}</bdi>
          </Link>
          {` · ${triggerWords(schedule.trigger, t, language)} · ${timezone}`}
        </p>
      </div>
      <dl className="relative z-1 flex w-full gap-6 text-xs sm:w-auto">
        <div>
          <dt className="text-faint">{t('schedules.next')}</dt>
          <dd>{next === null ? '–' : <Time at={next} />}</dd>
        </div>
        <div>
          <dt className="text-faint">{t('schedules.last')}</dt>
          <dd>
            {last === null ? (
              '–'
            ) : job === null ? (
              <Time at={last} />
            ) : (
              <Link to="/jobs/$id" params={{ id: job }} className="text-accent hover:underline">
                <Time at={last} />
              </Link>
            )}
          </dd>
        </div>
      </dl>
      {isAdmin ? <Commands schedule={schedule} /> : null}
    </li>
  )
}

/** What admins may do with it. */
function Commands({ schedule }: { readonly schedule: wire.ScheduleView }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const post = usePost()
  const { name, enabled, paused_at: pausedAt } = schedule
  const command = (verb: 'run' | 'pause' | 'resume', done: TextKey) => () =>
    post.mutate(
      { path: `schedules/${encodeURIComponent(name)}/${verb}` },
      { onSuccess: () => say(t(done)), onError: (error) => say(error, true) },
    )
  const look = { size: 'small', disabled: post.isPending } as const
  return (
    <div className="relative z-1 flex gap-2">
      {/* What is off in the file is switched on there. */}
      {!enabled ? null : pausedAt === null ? (
        <Button {...look} icon="pause" onClick={command('pause', 'schedule.pausedDone')}>
          {t('schedule.pause')}
        </Button>
      ) : (
        <Button {...look} icon="retry" onClick={command('resume', 'schedule.resumedDone')}>
          {t('schedule.resume')}
        </Button>
      )}
      <Button {...look} icon="run" onClick={command('run', 'schedules.ran')}>
        {t('schedules.run')}
      </Button>
    </div>
  )
}
