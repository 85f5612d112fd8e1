import type { ListedQuarantinedBody } from '@impresario/protocol'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { shortId } from '../data/format.ts'
import { useQuarantine } from '../data/queries.ts'
import { useMayCommand } from '../data/session.ts'
import { Preview } from '../job/bulk.tsx'
import { fingerprint } from '../job/fingerprint.ts'
import { JobName } from '../job/job-name.tsx'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Empty, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'

interface Group {
  readonly key: string
  readonly code: string
  readonly message: string
  readonly blueprint: string
  readonly state: string
  readonly jobs: readonly ListedQuarantinedBody[]
}

/** Jobs that stand aside, by what went wrong: mend the cause once, and send all of them back. */
export function QuarantinePage(): ReactNode {
  const { t } = useText()
  const { data, error, isPending, hasNextPage, fetchNextPage, refetch } = useQuarantine({})
  const groups = useMemo(() => groupsOf(data?.pages.flatMap(({ items }) => items) ?? []), [data])
  return (
    <>
      <PageHead title={t('nav.quarantine')} note={t('quarantine.note')} />
      {error === null ? null : <Failure error={error} retry={refetch} />}
      {isPending ? <Loading rows={5} /> : null}
      {!isPending && groups.length === 0 ? (
        <Panel flush>
          <Empty icon="check" title={t('quarantine.none')}>
            {t('quarantine.noneNote')}
          </Empty>
        </Panel>
      ) : null}
      <div className="flex flex-col gap-3">
        {groups.map((group) => (
          <ErrorGroup key={group.key} group={group} />
        ))}
      </div>
      {hasNextPage ? (
        <div className="mt-3 text-center">
          <Button
            onClick={() => {
              void fetchNextPage()
            }}
          >
            {t('quarantine.more')}
          </Button>
        </div>
      ) : null}
    </>
  )
}

function groupsOf(jobs: readonly ListedQuarantinedBody[]): readonly Group[] {
  const found = new Map<string, { group: Omit<Group, 'jobs'>; jobs: ListedQuarantinedBody[] }>()
  for (const job of jobs) {
    const message = job.error?.message ?? job.error_message ?? ''
    const code = job.error?.code ?? job.error_code ?? ''
    const state = job.error?.state ?? job.current_state
    const key = [job.blueprint_name, state, code, fingerprint(message)].join('\n')
    const known = found.get(key) ?? {
      group: { key, code, message, blueprint: job.blueprint_name, state },
      jobs: [],
    }
    known.jobs.push(job)
    found.set(key, known)
  }
  return [...found.values()]
    .map(({ group, jobs: all }) => ({ ...group, jobs: all }))
    .toSorted((a, b) => b.jobs.length - a.jobs.length)
}

const SHOWN_MAX = 20

function ErrorGroup({ group }: { readonly group: Group }): ReactNode {
  const { t } = useText()
  const [isOpen, setOpen] = useState(false)
  const [verb, setVerb] = useState<'retry' | 'discard'>()
  const mayCommand = useMayCommand()
  const newest = Math.max(...group.jobs.map(({ quarantined_at: at }) => at))
  return (
    <Panel flush className="overflow-hidden">
      <div className="flex flex-wrap items-start gap-x-4 gap-y-3 p-4">
        <span className="num flex h-9 min-w-9 items-center justify-center rounded-lg bg-warn-tint px-2 text-base font-semibold text-warn">
          {group.jobs.length}
        </span>
        <div className="min-w-0 flex-1 basis-64">
          <p className="line-clamp-3 font-medium [overflow-wrap:anywhere]" title={group.message.slice(0, 2_000)}>
            <bdi>{group.message.slice(0, 2_000)}</bdi>
          </p>
          <p className="mt-1 flex flex-wrap gap-x-3 gap-y-1 text-xs text-soft">
            <span className="font-mono">{group.code}</span>
            <span>
              <JobName blueprint={group.blueprint} /> · <bdi>{group.state}</bdi>
            </span>
            <span>
              {t('quarantine.newest')} <Time at={newest} />
            </span>
          </p>
        </div>
        {mayCommand ? (
          <div className="flex gap-2">
            <Button tone="primary" icon="retry" onClick={() => setVerb('retry')}>
              {t('quarantine.retryAll')}
            </Button>
            <Button tone="danger" icon="trash" onClick={() => setVerb('discard')}>
              {t('job.discard')}
            </Button>
          </div>
        ) : null}
      </div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-2 border-t border-line bg-raise/40 px-4 py-1.5 text-left text-xs font-medium text-soft hover:text-ink"
      >
        <Icon name={isOpen ? 'down' : 'right'} className="size-3" />
        {t('count.jobs', { n: group.jobs.length })}
      </button>
      {isOpen ? (
        <ul>
          {group.jobs.slice(0, SHOWN_MAX).map((job) => (
            <li key={job.job_id} className="border-t border-line">
              <Link
                to="/jobs/$id"
                params={{ id: job.job_id }}
                className="flex items-center gap-3 px-4 py-2 hover:bg-raise"
              >
                <span className="font-mono text-xs">{shortId(job.job_id)}</span>
                <bdi className="min-w-0 flex-1 truncate text-soft">{job.error?.message ?? job.error_message}</bdi>
                <Time at={job.quarantined_at} className="text-faint" />
              </Link>
            </li>
          ))}
          {group.jobs.length > SHOWN_MAX ? (
            <li className="border-t border-line px-4 py-2 text-soft">
              {t('bulk.more', { n: group.jobs.length - SHOWN_MAX })}
            </li>
          ) : null}
        </ul>
      ) : null}
      {verb === undefined ? null : <Preview verb={verb} jobs={group.jobs} close={() => setVerb(undefined)} />}
    </Panel>
  )
}
