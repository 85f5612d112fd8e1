import type { ListedJobBody } from '@impresario/protocol'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { duration, shortId, useNow } from '../data/format.ts'
import { useText } from '../text/text.tsx'
import { Bar, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'

export const ROW_GRID =
  'grid grid-cols-[minmax(0,1fr)_auto] @3xl:grid-cols-[9.5rem_minmax(0,1.3fr)_minmax(0,0.8fr)_minmax(0,1.6fr)_6rem_5rem] items-center gap-x-4 gap-y-0.5'

/** One job in a list. The whole row leads to it. */
export function JobRow({
  job,
  isActive = false,
}: {
  readonly job: ListedJobBody
  readonly isActive?: boolean
}): ReactNode {
  const { t } = useText()
  return (
    <Link
      to="/jobs/$id"
      params={{ id: job.job_id }}
      data-row={job.job_id}
      className={`${ROW_GRID} h-full px-4 py-2 hover:bg-raise ${isActive ? 'bg-raise' : ''}`}
    >
      <span className="order-2 justify-self-end @3xl:order-none @3xl:justify-self-start">
        <StatusBadge status={job.status} />
      </span>
      <span className="order-1 flex min-w-0 items-baseline gap-2 @3xl:order-none">
        <bdi className="truncate font-medium">{job.blueprint_name}</bdi>
        <span className="hidden font-mono text-xs text-faint @5xl:inline">{shortId(job.job_id)}</span>
      </span>
      <span className="order-3 truncate text-soft @3xl:order-none">
        <bdi>{job.current_state}</bdi>
      </span>
      <span className="hidden min-w-0 @3xl:block">
        <Doing job={job} />
      </span>
      <span className="order-4 justify-self-end text-faint @3xl:order-none @3xl:justify-self-start">
        <Time at={job.created_at} />
      </span>
      <span className="num hidden text-right text-soft @3xl:block" title={t('jobs.took')}>
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
      <span className="block truncate text-bad" title={error}>
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
  const now = useNow(job.ended_at === undefined ? 1_000 : 600_000)
  return duration((job.ended_at ?? now / 1_000) * 1_000 - job.created_at * 1_000)
}
