import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { useJobs } from '../data/queries.ts'
import { ApprovalCard } from '../job/approval-card.tsx'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { useKeys } from '../ui/keys.tsx'
import { Empty, Failure, Loading, PageHead, Panel } from '../ui/parts.tsx'

/** The inbox: what jobs ask people. */
export function ApprovalsPage(): ReactNode {
  const { t } = useText()
  const { data, error, isPending, hasNextPage, fetchNextPage, refetch } = useJobs({ status: 'waiting_for_human' })
  const jobs = useMemo(() => data?.pages.flatMap(({ items }) => items) ?? [], [data])
  const [place, setPlace] = useState(0)
  const active = Math.min(place, Math.max(0, jobs.length - 1))
  const keys = useMemo(
    () => ({
      j: () => setPlace(Math.min(active + 1, jobs.length - 1)),
      k: () => setPlace(Math.max(active - 1, 0)),
    }),
    [active, jobs.length],
  )
  useKeys(keys)
  return (
    <div className="mx-auto max-w-3xl">
      <PageHead title={t('nav.approvals')} note={t('approvals.note')} />
      {error === null ? null : <Failure error={error} retry={refetch} />}
      {isPending ? <Loading rows={4} /> : null}
      {!isPending && jobs.length === 0 ? (
        <Panel flush>
          <Empty icon="check" title={t('approvals.none')}>
            {t('approvals.noneNote')}
          </Empty>
        </Panel>
      ) : null}
      <ul className="flex flex-col gap-3">
        {jobs.map((job, index) =>
          job.approval === undefined ? null : (
            <li key={job.job_id}>
              <ApprovalCard job={job} approval={job.approval} isListed isActive={index === active} />
            </li>
          ),
        )}
      </ul>
      {hasNextPage ? (
        <div className="mt-3 text-center">
          <Button
            onClick={() => {
              void fetchNextPage()
            }}
          >
            {t('common.more')}
          </Button>
        </div>
      ) : null}
    </div>
  )
}
