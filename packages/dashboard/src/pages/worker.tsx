import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { shortId } from '../data/format.ts'
import { useEvents, useWorker, useWorkerHistory } from '../data/queries.ts'
import { readWorker } from '../data/worker.ts'
import type { WorkerView } from '../data/worker.ts'
import { useParam } from '../data/search.ts'
import { useText } from '../text/text.tsx'
import { LinkButton } from '../ui/button.tsx'
import { JsonView } from '../ui/json.tsx'
import { Bar, Empty, Fact, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'

export function WorkerPage(): ReactNode {
  const id = useParam('id')
  const { t } = useText()
  const { data, error } = useWorker(id)
  if (error !== null) {
    return (
      <Empty icon="workers" title={t('worker.gone')}>
        <p className="mb-4">{t('worker.goneNote')}</p>
        <LinkButton to="/workers">{t('nav.workers')}</LinkButton>
      </Empty>
    )
  }
  if (data === undefined) return <Loading rows={6} />
  const worker = readWorker(data)
  return (
    <>
      <PageHead
        title={
          <span className="flex flex-wrap items-center gap-3">
            <bdi className="[overflow-wrap:anywhere]">{worker.id}</bdi>
            <StatusBadge status={worker.status} />
          </span>
        }
        note={worker.type}
      />
      <div className="grid gap-4 xl:grid-cols-2">
        <Facts worker={worker} />
        <Doings id={id} />
        <History id={id} />
        <Panel title={t('job.tab.raw')}>
          <JsonView value={worker.raw} label={worker.id} />
        </Panel>
      </div>
    </>
  )
}

function Facts({ worker }: { readonly worker: WorkerView }): ReactNode {
  const { t } = useText()
  const { slots, load, reputation } = worker
  return (
    <Panel title={t('worker.facts')}>
      <dl className="grid grid-cols-2 gap-4">
        <Fact name={t('workers.load')}>
          <span className="num">{slots === undefined ? load : `${load} / ${slots}`}</span>
          <Bar value={slots === undefined ? 0 : load / slots} label={t('workers.load')} />
        </Fact>
        <Fact name={t('workers.reputation')}>
          <span className="num">{Math.round(reputation * 100)} %</span>
          <Bar value={reputation} label={t('workers.reputation')} tone="bg-ok" />
        </Fact>
        <Fact name={t('worker.hardware')}>{worker.hardware.join(', ') || '–'}</Fact>
        <Fact name={t('worker.costName')}>
          {worker.costPerSecond === undefined ? '–' : t('workers.cost', { cost: worker.costPerSecond })}
        </Fact>
        <Fact name={t('worker.registered')}>
          <Time at={worker.registeredAt} />
        </Fact>
        <Fact name={t('worker.seen')}>
          <Time at={worker.seenAt} />
        </Fact>
        <Fact name={t('worker.skills')}>{worker.skills.join(', ')}</Fact>
        <Fact name={t('worker.models')}>{worker.models.join(', ') || '–'}</Fact>
      </dl>
    </Panel>
  )
}

/** What it did lately, and in which jobs. */
function Doings({ id }: { readonly id: string }): ReactNode {
  const { t } = useText()
  const { data } = useEvents({ worker: id })
  const events = data?.pages[0]?.items.filter(({ job_id: job }) => job !== null).slice(0, 20) ?? []
  return (
    <Panel flush title={t('worker.doings')} className="overflow-hidden">
      {events.length === 0 ? <p className="px-4 py-5 text-soft">{t('worker.noDoings')}</p> : null}
      <ul className="max-h-80 overflow-y-auto">
        {events.map((event) => (
          <li key={event.event_id} className="border-b border-line last:border-b-0">
            <Link
              to="/jobs/$id"
              params={{ id: event.job_id ?? '' }}
              className="flex items-center gap-3 px-4 py-2 hover:bg-raise"
            >
              <span className="font-medium">{event.event_type.replaceAll('_', ' ')}</span>
              <bdi className="min-w-0 flex-1 truncate text-soft">{event.note}</bdi>
              <span className="font-mono text-xs text-faint">{shortId(event.job_id ?? '')}</span>
              <Time at={event.timestamp} className="text-faint" />
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function History({ id }: { readonly id: string }): ReactNode {
  const { t } = useText()
  const { data } = useWorkerHistory(id)
  const events = data?.pages[0]?.items ?? []
  return (
    <Panel flush title={t('worker.history')} className="overflow-hidden">
      {events.length === 0 ? <p className="px-4 py-5 text-soft">{t('worker.noHistory')}</p> : null}
      <ul className="max-h-80 overflow-y-auto">
        {events.map((event) => (
          <li key={event.event_id} className="flex items-center gap-3 border-b border-line px-4 py-2 last:border-b-0">
            <span className="font-medium">{event.event_type.replaceAll('_', ' ')}</span>
            <bdi className="min-w-0 flex-1 truncate text-soft">{event.note}</bdi>
            <Time at={event.timestamp} className="text-faint" />
          </li>
        ))}
      </ul>
    </Panel>
  )
}
