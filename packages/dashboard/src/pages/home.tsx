import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { duration, useNow } from '../data/format.ts'
import { useCounts, useDurations, useEventCounts, useJobs, useQuarantine, useReadiness } from '../data/queries.ts'
import { GROUPS } from '../job/job-query.ts'
import { JobName } from '../job/job-name.tsx'
import { JobRow } from '../job/job-row.tsx'
import { useText } from '../text/text.tsx'
import type { TextKey } from '../text/translate.ts'
import { Columns } from '../ui/columns.tsx'
import { Icon } from '../ui/icon.tsx'
import { Lines } from '../ui/lines.tsx'
import { NoHistory } from '../ui/no-history.tsx'
import type { IconName } from '../ui/icon.tsx'
import { Code, Empty, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'

/** One look says what to do next. */
export function HomePage(): ReactNode {
  const { t } = useText()
  const { data: counts, error, refetch } = useCounts()
  return (
    <>
      <PageHead title={t('nav.home')} note={t('home.note')}>
        <Health />
      </PageHead>
      {error === null ? null : <Failure error={error} retry={refetch} />}
      <Tiles jobs={counts?.jobs ?? {}} workers={counts?.workers ?? { total: 0 }} />
      <div className="mt-4 grid gap-4 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="flex min-w-0 flex-col gap-4">
          <Attention />
          <Recent />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          {counts?.keeps_history === false ? <NoThroughput /> : <LastHour />}
          {counts?.keeps_history === false ? null : <Throughput />}
          <Statuses jobs={counts?.jobs ?? {}} />
        </div>
      </div>
    </>
  )
}

type Counts = Readonly<Record<string, number>>

function sum(jobs: Counts, statuses: string): number {
  return statuses.split(',').reduce((total, status) => total + (jobs[status] ?? 0), 0)
}

function Tiles({
  jobs,
  workers,
}: {
  readonly jobs: Counts
  readonly workers: Counts & { readonly total: number }
}): ReactNode {
  const busy = (workers['busy'] ?? 0) + (workers['full'] ?? 0)
  const { t } = useText()
  return (
    <ul className="grid grid-cols-2 gap-3 *:last:col-span-2 sm:grid-cols-3 sm:*:last:col-span-1 lg:grid-cols-5">
      <Tile title="jobs.show.open" icon="jobs" value={sum(jobs, GROUPS.open)} to="/jobs" search={{ show: 'open' }} />
      <Tile title="nav.approvals" icon="inbox" value={jobs['waiting_for_human'] ?? 0} to="/approvals" tone="text-ask" />
      <Tile title="nav.quarantine" icon="alert" value={jobs['quarantined'] ?? 0} to="/quarantine" tone="text-warn" />
      <Tile
        title="jobs.show.failed"
        icon="close"
        value={sum(jobs, GROUPS.failed)}
        to="/jobs"
        search={{ show: 'failed' }}
        tone="text-bad"
      />
      <Tile
        title="nav.workers"
        icon="workers"
        value={workers.total}
        to="/workers"
        note={workers.total === 0 ? undefined : t('home.busy', { n: busy })}
      />
    </ul>
  )
}

function Tile({
  title,
  icon,
  value,
  to,
  search,
  tone = 'text-ink',
  note,
}: {
  readonly title: TextKey
  readonly icon: IconName
  readonly value: number
  readonly to: string
  readonly search?: Readonly<Record<string, string>>
  readonly tone?: string
  readonly note?: string | undefined
}): ReactNode {
  const { t, language } = useText()
  return (
    <li>
      <Link
        to={to}
        {...(search === undefined ? {} : { search })}
        className="block rounded-xl border border-line bg-panel p-4 shadow-card hover:border-edge"
      >
        <span className="flex items-center gap-2 text-soft">
          <Icon name={icon} className="size-3.5" />
          <span className="truncate">{t(title)}</span>
        </span>
        <span className="mt-1 flex items-baseline gap-2">
          <span className={`num text-2xl font-semibold tracking-tight ${value === 0 ? 'text-faint' : tone}`}>
            {new Intl.NumberFormat(language).format(value)}
          </span>
          {note === undefined ? null : <span className="truncate text-xs text-faint">{note}</span>}
        </span>
      </Link>
    </li>
  )
}

function Health(): ReactNode {
  const { t } = useText()
  const { data, error } = useReadiness()
  const isWell = error === null && data?.status === 'ready'
  if (data === undefined && error === null) return null
  return (
    <Link
      to="/settings"
      className={`flex items-center gap-2 rounded-full px-3 py-1 text-xs font-medium ${isWell ? 'bg-ok-tint text-ok' : 'bg-bad-tint text-bad'}`}
    >
      <span className="size-1.5 rounded-full bg-current" />
      {t(isWell ? 'home.healthy' : 'home.unhealthy')}
    </Link>
  )
}

/** What needs a person, the newest of each. */
function Attention(): ReactNode {
  const { t } = useText()
  const asking = useJobs({ status: 'waiting_for_human' }, 5)
  const aside = useQuarantine({})
  const asked = asking.data?.pages[0]?.items.slice(0, 5) ?? []
  const stuck = aside.data?.pages[0]?.items.slice(0, 5) ?? []
  return (
    <Panel flush title={t('home.attention')} className="overflow-hidden">
      {asking.isPending || aside.isPending ? (
        <Loading rows={2} />
      ) : asked.length + stuck.length === 0 ? (
        <p className="flex items-center gap-2 px-4 py-5 text-soft">
          <Icon name="check" className="size-4 text-ok" />
          {t('home.calm')}
        </p>
      ) : (
        <ul>
          {asked.map((job) => (
            <Need
              key={job.job_id}
              to="/approvals"
              icon="person"
              tone="text-ask"
              title={job.approval?.message ?? ''}
              blueprint={job.blueprint_name}
              at={job.updated_at}
            />
          ))}
          {stuck.map((job) => (
            <Need
              key={job.job_id}
              to="/jobs/$id"
              params={{ id: job.job_id }}
              icon="alert"
              tone="text-warn"
              title={job.error?.message ?? job.error_message ?? ''}
              blueprint={job.blueprint_name}
              at={job.quarantined_at}
            />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function Need({
  to,
  params,
  icon,
  tone,
  title,
  blueprint,
  at,
}: {
  readonly to: string
  readonly params?: Readonly<Record<string, string>>
  readonly icon: IconName
  readonly tone: string
  readonly title: string
  readonly blueprint: string
  readonly at: number
}): ReactNode {
  return (
    <li className="border-b border-line last:border-b-0">
      <Link
        to={to}
        {...(params === undefined ? {} : { params })}
        className="flex items-center gap-3 px-4 py-2.5 hover:bg-raise"
      >
        <Icon name={icon} className={`size-4 ${tone}`} />
        <span className="min-w-0 flex-1">
          <bdi className="block truncate font-medium">{title.slice(0, 300)}</bdi>
          <JobName blueprint={blueprint} className="block truncate text-xs text-soft" />
        </span>
        <Time at={at} className="text-faint" />
      </Link>
    </li>
  )
}

function Recent(): ReactNode {
  const { t } = useText()
  const { data, isPending } = useJobs({}, 10)
  const jobs = data?.pages[0]?.items ?? []
  return (
    <Panel
      flush
      title={t('home.recent')}
      className="@container overflow-hidden"
      actions={
        <Link to="/jobs" className="text-accent hover:underline">
          {t('home.allJobs')}
        </Link>
      }
    >
      {isPending ? <Loading rows={4} /> : null}
      {!isPending && jobs.length === 0 ? (
        <Empty icon="jobs" title={t('jobs.none')}>
          <p className="mb-3">{t('jobs.noneNote')}</p>
          <Code>impresario jobs start &lt;blueprint&gt;</Code>
        </Empty>
      ) : null}
      <ul>
        {jobs.map((job) => (
          <li key={job.job_id} className="border-b border-line last:border-b-0">
            <JobRow job={job} />
          </li>
        ))}
      </ul>
    </Panel>
  )
}

/** Without a history nothing is known of jobs that have ended before: zeros would be a lie. */
function NoThroughput(): ReactNode {
  const { t } = useText()
  return (
    <Panel title={t('home.throughput')}>
      <NoHistory />
    </Panel>
  )
}

const MINUTES = 60

/** Jobs that ended in each minute of an hour, and how long they took. */
function LastHour(): ReactNode {
  const { t, language } = useText()
  // Whole minutes, so that the same question is asked for a while.
  const until = Math.ceil(useNow(20_000) / 60_000) * 60
  const { data } = useDurations({ since: until - MINUTES * 60, until, spans: MINUTES })
  const spans = data?.spans ?? []
  const time = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit' })
  const finished = spans.reduce((total, span) => total + span.finished, 0)
  const newest = spans.findLast(({ p95_ms: p95 }) => p95 !== null)
  const numbers = new Intl.NumberFormat(language, { maximumFractionDigits: 1 })
  return (
    <Panel title={t('home.hour')}>
      <dl className="mb-3 flex flex-wrap gap-x-6 gap-y-1">
        <Figure name={t('home.perMinute')} value={numbers.format(finished / MINUTES)} />
        <Figure name="p50" value={newest?.p50_ms === undefined ? '–' : duration(newest.p50_ms ?? 0, language)} />
        <Figure name="p95" value={newest?.p95_ms === undefined ? '–' : duration(newest.p95_ms ?? 0, language)} />
      </dl>
      <Columns
        label={t('home.hour')}
        columns={spans.map(({ timestamp, finished: good, failed: bad }) => ({
          label: time.format(timestamp * 1_000),
          good,
          bad,
        }))}
      />
      <div className="mt-3">
        <Lines
          label={t('home.latency')}
          written={(ms) => duration(ms, language)}
          lines={[
            { name: 'p95', className: 'stroke-warn text-warn', values: spans.map((span) => span.p95_ms ?? undefined) },
            {
              name: 'p50',
              className: 'stroke-accent text-accent',
              values: spans.map((span) => span.p50_ms ?? undefined),
            },
          ]}
        />
        <p className="mt-1 flex gap-4 text-xs text-soft">
          {t('home.latency')}
          <Key className="bg-accent" name="p50" />
          <Key className="bg-warn" name="p95" />
        </p>
      </div>
      {data?.is_partial === true ? (
        <p className="mt-2 text-xs text-soft">
          {t('home.partial')} <Time at={data.since} />
        </p>
      ) : null}
    </Panel>
  )
}

function Figure({ name, value }: { readonly name: string; readonly value: string }): ReactNode {
  return (
    <div className="flex flex-row-reverse items-baseline gap-1.5">
      <dt className="text-soft">{name}</dt>
      <dd className="num font-semibold">{value}</dd>
    </div>
  )
}

function Key({ name, className }: { readonly name: string; readonly className: string }): ReactNode {
  return (
    <span className="flex items-center gap-1.5">
      <span aria-hidden="true" className={`h-0.5 w-3 ${className}`} />
      {name}
    </span>
  )
}

const HOURS = 24

/** Jobs that ended in each hour of a day. */
function Throughput(): ReactNode {
  const { t, language } = useText()
  const since = Math.floor(Date.now() / 3_600_000) * 3_600 - (HOURS - 1) * 3_600
  const { data = [] } = useEventCounts({ per: 'hour', event: 'job_finished,job_failed', since })
  const columns = useMemo(
    () =>
      Array.from({ length: HOURS }, (_, index) => {
        const at = since + index * 3_600
        const of = (type: string): number =>
          data.find(({ timestamp, event_type: event }) => timestamp === at && event === type)?.count ?? 0
        return {
          label: new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit' }).format(at * 1_000),
          good: of('job_finished'),
          bad: of('job_failed'),
        }
      }),
    [data, since, language],
  )
  const finished = columns.reduce((total, { good }) => total + good, 0)
  const failed = columns.reduce((total, { bad }) => total + bad, 0)
  return (
    <Panel title={t('home.throughput')}>
      <p className="mb-3 flex gap-4 text-soft">
        <span>
          <span className="num font-semibold text-ink">{new Intl.NumberFormat(language).format(finished)}</span>{' '}
          {t('home.finished')}
        </span>
        <span>
          <span className={`num font-semibold ${failed > 0 ? 'text-bad' : 'text-ink'}`}>{failed}</span>{' '}
          {t('home.failed')}
        </span>
      </p>
      <Columns columns={columns} label={t('home.throughput')} />
    </Panel>
  )
}

function Statuses({ jobs }: { readonly jobs: Counts }): ReactNode {
  const { t } = useText()
  const rows = Object.entries(jobs)
    .filter(([status, count]) => status !== 'queued' && count > 0)
    .toSorted(([, a], [, b]) => b - a)
  const most = Math.max(1, ...rows.map(([, count]) => count))
  return (
    <Panel title={t('home.statuses')}>
      {rows.length === 0 ? <p className="text-soft">{t('jobs.none')}</p> : null}
      <ul className="flex flex-col gap-2">
        {rows.map(([status, count]) => (
          <StatusCount key={status} status={status} count={count} share={count / most} />
        ))}
      </ul>
    </Panel>
  )
}

function StatusCount({
  status,
  count,
  share,
}: {
  readonly status: string
  readonly count: number
  readonly share: number
}): ReactNode {
  const { language } = useText()
  return (
    <li className="grid grid-cols-[9rem_1fr_3.5rem] items-center gap-3">
      <span>
        <StatusBadge status={status} />
      </span>
      <span className="h-1.5 overflow-hidden rounded-full bg-raise">
        <span className="block h-full rounded-full bg-edge" style={{ width: `${Math.max(2, share * 100)}%` }} />
      </span>
      <span className="num text-right text-soft">{new Intl.NumberFormat(language).format(count)}</span>
    </li>
  )
}
