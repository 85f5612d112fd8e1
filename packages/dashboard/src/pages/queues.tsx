import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ApiError } from '../data/api.ts'
import { duration } from '../data/format.ts'
import { useCounts } from '../data/queries.ts'
import { useOldestWaiting, useQueues, useTaskFlow } from '../data/server-queries.ts'
import { JobName } from '../job/job-name.tsx'
import { useText } from '../text/text.tsx'
import { Empty, Fact, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { JsonView } from '../ui/json.tsx'

/** What waits, by the kind of work: what no worker can take, and what lies ready for one. */
export function QueuesPage(): ReactNode {
  const { t, language } = useText()
  const { data, error, isPending, refetch } = useQueues()
  const rows = (data ?? []).toSorted(
    (a, b) => b.waiting - a.waiting || (b.placed_per_minute ?? 0) - (a.placed_per_minute ?? 0),
  )
  const isForbidden = error instanceof ApiError && error.status === 403
  return (
    <>
      <PageHead title={t('nav.queues')} note={t('queues.note')} />
      {error === null || isForbidden ? null : <Failure error={error} retry={refetch} />}
      <Flow />
      <Panel flush className="overflow-hidden">
        {isPending ? <Loading /> : null}
        {isForbidden ? <Empty icon="queue" title={t('queues.forbidden')} /> : null}
        {data !== undefined && rows.length === 0 ? (
          <Empty icon="check" title={t('queues.none')}>
            {t('queues.noneNote')}
          </Empty>
        ) : null}
        <ul>
          {rows.map((queue) => (
            <li
              key={`${queue.task_type ?? ''} ${queue.worker ?? ''} ${JSON.stringify(queue.requirements)}`}
              className="grid grid-cols-[auto_minmax(0,1fr)] items-start gap-x-4 gap-y-2 border-b border-line px-4 py-3 last:border-b-0 sm:grid-cols-[3.5rem_minmax(0,1fr)_auto]"
            >
              <span className="num min-w-6 text-right text-lg font-semibold">
                {queue.waiting}
                {queue.is_exact ? '' : '+'}
              </span>
              <span className="min-w-0">
                {queue.worker === null ? (
                  <>
                    <bdi className="block font-medium [overflow-wrap:anywhere]">{queue.task_type}</bdi>
                    <span className="block text-xs text-soft">
                      {t(queue.waiting === 0 ? 'queues.passing' : 'queues.anyWorker')}
                    </span>
                    {queue.requirements === null ? null : (
                      <div className="mt-1">
                        <JsonView value={queue.requirements} label={queue.task_type ?? ''} />
                      </div>
                    )}
                  </>
                ) : (
                  <>
                    <Link
                      to="/workers/$id"
                      params={{ id: queue.worker }}
                      className="font-medium [overflow-wrap:anywhere] hover:underline"
                    >
                      <bdi>{queue.worker}</bdi>
                    </Link>
                    <span className="block text-xs text-soft">{t('queues.oneWorker')}</span>
                  </>
                )}
              </span>
              <span className="num col-start-2 flex flex-wrap gap-x-4 text-xs text-soft sm:col-start-3 sm:block sm:text-right">
                {queue.oldest_seconds === null ? null : (
                  <span className="block font-medium text-ink">
                    {t('queues.oldestTask', { span: duration(queue.oldest_seconds * 1_000, language) })}
                  </span>
                )}
                {queue.placed_per_minute === null || queue.taken_per_minute === null ? null : (
                  <>
                    <span className="block">{t('queues.inRate', { n: queue.placed_per_minute })}</span>
                    <span className="block">{t('queues.outRate', { n: queue.taken_per_minute })}</span>
                  </>
                )}
              </span>
            </li>
          ))}
        </ul>
      </Panel>
    </>
  )
}

/** How much comes and goes, and who has waited longest. */
function Flow(): ReactNode {
  const { t, language } = useText()
  const { data: flow } = useTaskFlow()
  const { data: oldest } = useOldestWaiting()
  const { data: counts } = useCounts()
  const numbers = new Intl.NumberFormat(language)
  const hasFlow = flow !== undefined && counts?.keeps_history === true
  return (
    <Panel className="mb-4" {...(hasFlow ? { title: t('queues.flow') } : {})}>
      <dl className="grid grid-cols-2 gap-4 sm:grid-cols-3">
        {hasFlow ? (
          <>
            <Fact name={t('queues.in')}>
              <span className="num text-lg font-semibold">{numbers.format(flow.placed)}</span>
            </Fact>
            <Fact name={t('queues.out')}>
              <span className="num text-lg font-semibold">{numbers.format(flow.ended)}</span>
            </Fact>
          </>
        ) : null}
        <Fact name={t('queues.oldest')}>
          {oldest === undefined || oldest === null ? (
            t('queues.noOldest')
          ) : (
            <Link to="/jobs/$id" params={{ id: oldest.job_id }} className="font-medium text-accent hover:underline">
              <JobName blueprint={oldest.blueprint_name} /> <Time at={oldest.created_at} />
            </Link>
          )}
        </Fact>
      </dl>
    </Panel>
  )
}
