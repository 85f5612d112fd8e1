import type { ListedJobBody } from '@impresario/protocol'
import { Link } from '@tanstack/react-router'
import type { CSSProperties, ReactNode } from 'react'
import { duration, shortId, useNow } from '../data/format.ts'
import { useText } from '../text/text.tsx'
import { Bar, Time } from '../ui/parts.tsx'
import { JobName } from './job-name.tsx'
import { gridOf, USUAL_COLUMNS } from './job-columns.ts'
import type { Column } from './job-columns.ts'
import { StatusBadge } from '../ui/status.tsx'

/** Two lines on a narrow page; the chosen columns on a wide one, from `--columns`. */
export const ROW_GRID = 'grid grid-cols-[minmax(0,1fr)_auto] @3xl:grid-cols-(--columns) items-center gap-x-4 gap-y-0.5'

export function gridStyle(columns: readonly Column[]): CSSProperties {
  return { '--columns': gridOf(columns) } as CSSProperties
}

/** One job in a list. The whole row leads to it. */
export function JobRow({
  job,
  isActive = false,
  columns = USUAL_COLUMNS,
}: {
  readonly job: ListedJobBody
  readonly isActive?: boolean
  readonly columns?: readonly Column[]
}): ReactNode {
  const { t } = useText()
  /** Shown on a wide page, if it is chosen. */
  const wide = (column: Column): string => (columns.includes(column) ? 'hidden @3xl:block' : 'hidden')
  /** The same for what a narrow page shows in any case. */
  const always = (column: Column): string => (columns.includes(column) ? '' : '@3xl:hidden')
  return (
    <Link
      to="/jobs/$id"
      params={{ id: job.job_id }}
      data-row={job.job_id}
      style={gridStyle(columns)}
      className={`${ROW_GRID} h-full px-4 py-2 hover:bg-raise ${isActive ? 'bg-raise' : ''}`}
    >
      <span className={`order-2 justify-self-end @3xl:order-none @3xl:justify-self-start ${always('status')}`}>
        <StatusBadge status={job.status} />
      </span>
      <span className={`truncate font-mono text-xs text-faint ${wide('id')}`} title={job.job_id}>
        {shortId(job.job_id)}
      </span>
      <span className={`order-1 flex min-w-0 items-baseline gap-2 @3xl:order-none ${always('blueprint')}`}>
        <JobName blueprint={job.blueprint_name} className="truncate font-medium" />
        {columns.includes('id') ? null : (
          <span className="hidden font-mono text-xs text-faint @5xl:inline">{shortId(job.job_id)}</span>
        )}
      </span>
      <span className={`num text-soft ${wide('version')}`}>{job.blueprint_version}</span>
      <span className={`order-3 truncate text-soft @3xl:order-none ${always('state')}`}>
        <bdi>{job.current_state}</bdi>
      </span>
      <span className={`min-w-0 ${wide('doing')}`}>
        <Doing job={job} />
      </span>
      <span className={`min-w-0 truncate text-soft ${wide('owner')}`}>
        <bdi>{job.owner}</bdi>
      </span>
      <span
        className={`order-4 justify-self-end text-faint @3xl:order-none @3xl:justify-self-start ${always('created')}`}
      >
        <Time at={job.created_at} />
      </span>
      <span className={`text-faint ${wide('updated')}`}>
        <Time at={job.updated_at} />
      </span>
      <span className={`num text-right text-soft ${wide('took')}`} title={t('jobs.took')}>
        <Took job={job} />
      </span>
    </Link>
  )
}

/** What it is doing, or why not, in a few words. */
function Doing({ job }: { readonly job: ListedJobBody }): ReactNode {
  const { t } = useText()
  const { error_message: error, approval, work, progress, waits_for: wait } = job
  if (error !== undefined && job.status !== 'finished') {
    return (
      <span className={`block truncate ${job.status === 'cancelled' ? 'text-soft' : 'text-bad'}`} title={error}>
        <bdi>{error}</bdi>
      </span>
    )
  }
  if (approval !== undefined) {
    return (
      <span className="block truncate text-ask">
        <bdi>{approval.message}</bdi>
      </span>
    )
  }
  if (progress !== undefined && job.ended_at === undefined) return <Bar value={progress} label={t('jobs.progress')} />
  if (work !== undefined) {
    const { running, waiting, delayed, workers } = work
    const parts = [
      running > 0
        ? `${t('jobs.runningTasks', { n: running })}${workers[0] === undefined ? '' : ` (${workers[0]})`}`
        : '',
      waiting > 0 ? t('jobs.waitingTasks', { n: waiting }) : '',
      delayed > 0 ? t('jobs.delayedTasks', { n: delayed }) : '',
    ]
    return <span className="block truncate text-soft">{parts.filter((part) => part !== '').join(', ')}</span>
  }
  if (wait?.kind === 'event') return <span className="block truncate text-soft">{wait.topic}</span>
  if (wait?.until !== undefined) return <Time at={wait.until} className="text-soft" />
  return null
}

function Took({ job }: { readonly job: ListedJobBody }): ReactNode {
  const { language } = useText()
  const now = useNow(job.ended_at === undefined ? 1_000 : 600_000)
  return duration((job.ended_at ?? now / 1_000) * 1_000 - job.created_at * 1_000, language)
}
