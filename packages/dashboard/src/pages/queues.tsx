import type { ReactNode } from 'react'
import { useLive } from '../data/queries.ts'
import { ApiError } from '../data/api.ts'
import { useText } from '../text/text.tsx'
import { Empty, Failure, Loading, PageHead, Panel } from '../ui/parts.tsx'
import { JsonView } from '../ui/json.tsx'
import { Link } from '@tanstack/react-router'

interface QueueBody {
  readonly task_type: string | null
  readonly worker: string | null
  readonly requirements: Readonly<Record<string, unknown>> | null
  readonly waiting: number
  readonly is_exact: boolean
}

/** What waits, by the kind of work: what no worker can take, and what lies ready for one. */
export function QueuesPage(): ReactNode {
  const { t } = useText()
  const { data, error, isPending, refetch } = useLive<readonly QueueBody[]>(['queues'], 'queues')
  const rows = (data ?? []).toSorted((a, b) => b.waiting - a.waiting)
  const isForbidden = error instanceof ApiError && error.status === 403
  return (
    <>
      <PageHead title={t('nav.queues')} note={t('queues.note')} />
      {error === null || isForbidden ? null : <Failure error={error} retry={refetch} />}
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
              className="flex items-start gap-4 border-b border-line px-4 py-3 last:border-b-0"
            >
              <span className="num w-14 text-right text-lg font-semibold">
                {queue.waiting}
                {queue.is_exact ? '' : '+'}
              </span>
              <span className="min-w-0 flex-1">
                {queue.worker === null ? (
                  <>
                    <bdi className="block font-medium">{queue.task_type}</bdi>
                    <span className="block text-xs text-soft">{t('queues.anyWorker')}</span>
                    {queue.requirements === null ? null : (
                      <div className="mt-1">
                        <JsonView value={queue.requirements} label={queue.task_type ?? ''} />
                      </div>
                    )}
                  </>
                ) : (
                  <>
                    <Link to="/workers/$id" params={{ id: queue.worker }} className="font-medium hover:underline">
                      <bdi>{queue.worker}</bdi>
                    </Link>
                    <span className="block text-xs text-soft">{t('queues.oneWorker')}</span>
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
