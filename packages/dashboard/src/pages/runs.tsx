import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useRuns } from '../data/automation-queries.ts'
import type { RunListed, RunStatus } from '../data/automation-queries.ts'
import { duration } from '../data/format.ts'
import { useAddress } from '../data/search.ts'
import { useText } from '../text/text.tsx'
import { FilterSelect } from '../ui/filters.tsx'
import { PagedList } from '../ui/list.tsx'
import { PageHead, Time } from '../ui/parts.tsx'
import { StatusBadge, statusWords } from '../ui/status.tsx'

const STATUSES: readonly RunStatus[] = ['running', 'succeeded', 'failed', 'canceled', 'quarantined']

export function RunsPage(): ReactNode {
  const { t } = useText()
  const [search] = useAddress()
  const pages = useRuns({ status: search['status'] })
  return (
    <>
      <PageHead title={t('nav.runs')} note={t('runs.note')}>
        <FilterSelect
          name="status"
          label={t('jobs.column.status')}
          any={t('jobs.show.all')}
          options={STATUSES.map((status) => [status, statusWords(t, status)])}
        />
      </PageHead>
      <PagedList
        pages={pages}
        keyOf={({ id }) => id}
        icon="run"
        none={t('runs.none')}
        noneNote={t('runs.noneNote')}
        row={(run) => <RunRow run={run} />}
      />
    </>
  )
}

export function RunRow({ run }: { readonly run: RunListed }): ReactNode {
  const { t, language } = useText()
  return (
    <Link to="/runs/$id" params={{ id: run.id }} className="flex items-center gap-4 px-4 py-2.5 hover:bg-raise">
      <span className="min-w-0 flex-1">
        <bdi className="block truncate font-medium">{run.title}</bdi>
        <bdi className="block truncate text-xs text-soft">{run.error?.message ?? t(`runs.by.${run.trigger.kind}`)}</bdi>
      </span>
      <StatusBadge status={run.status} />
      <span className="num hidden w-20 text-right text-soft sm:block">
        {run.ended_at === null ? '' : duration((run.ended_at - run.created_at) * 1_000, language)}
      </span>
      <Time at={run.created_at} className="w-24 text-right text-faint" />
    </Link>
  )
}
