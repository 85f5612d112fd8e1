import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { useAddress } from '../data/search.ts'
import { useWorkers } from '../data/queries.ts'
import { useText } from '../text/text.tsx'
import { FilterSearch } from '../ui/filters.tsx'
import { Bar, Code, Empty, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { readWorker } from '../data/worker.ts'
import type { WorkerView } from '../data/worker.ts'

export function WorkersPage(): ReactNode {
  const { t } = useText()
  const [search] = useAddress()
  const { data, error, isPending, refetch } = useWorkers()
  const workers = useMemo(() => (data?.pages.flatMap(({ items }) => items) ?? []).map(readWorker), [data])
  const q = (search['q'] ?? '').toLowerCase()
  const shown = workers.filter(({ id, type, skills }) =>
    [id, type, ...skills].some((text) => text.toLowerCase().includes(q)),
  )
  return (
    <>
      <PageHead title={t('nav.workers')} note={t('workers.note')}>
        <FilterSearch label={t('workers.search')} />
      </PageHead>
      {error === null ? null : <Failure error={error} retry={refetch} />}
      {isPending ? <Loading /> : null}
      {!isPending && workers.length === 0 ? (
        <Panel flush>
          <Empty icon="workers" title={t('workers.none')}>
            <p className="mb-3">{t('workers.noneNote')}</p>
            <Code>ORCHESTRATOR_URL=… WORKER_TOKEN=… npx tsx worker.ts</Code>
          </Empty>
        </Panel>
      ) : null}
      <ul className="grid grid-cols-1 gap-3 sm:grid-cols-2 xl:grid-cols-3">
        {shown.slice(0, 300).map((worker) => (
          <li key={worker.id}>
            <WorkerCard worker={worker} />
          </li>
        ))}
      </ul>
    </>
  )
}

function WorkerCard({ worker }: { readonly worker: WorkerView }): ReactNode {
  const { t } = useText()
  const { id, type, status, skills, load, slots, reputation, costPerSecond, hardware, seenAt } = worker
  return (
    <Link
      to="/workers/$id"
      params={{ id }}
      className="flex h-full flex-col gap-3 rounded-xl border border-line bg-panel p-4 shadow-card hover:border-edge"
    >
      <span className="flex items-center gap-2">
        <bdi className="min-w-0 flex-1 truncate text-base font-semibold">{id}</bdi>
        <StatusBadge status={status} />
      </span>
      <span className="flex flex-wrap gap-x-3 gap-y-1 text-xs text-soft">
        <bdi>{type}</bdi>
        {hardware.map((part) => (
          <span key={part}>{part}</span>
        ))}
        {costPerSecond === undefined ? null : <span className="num">{t('workers.cost', { cost: costPerSecond })}</span>}
      </span>
      <span className="grid grid-cols-[auto_1fr_auto] items-center gap-x-2 gap-y-1.5 text-xs text-soft">
        <span>{t('workers.load')}</span>
        <Bar value={slots === undefined ? 0 : load / slots} label={t('workers.load')} />
        <span className="num">{slots === undefined ? load : `${load} / ${slots}`}</span>
        <span>{t('workers.reputation')}</span>
        <Bar
          value={reputation}
          label={t('workers.reputation')}
          tone={reputation < 0.5 ? 'bg-bad' : reputation < 0.8 ? 'bg-warn' : 'bg-ok'}
        />
        <span className="num">{Math.round(reputation * 100)} %</span>
      </span>
      <span className="mt-auto flex flex-wrap gap-1">
        {skills.slice(0, 5).map((skill) => (
          <bdi key={skill} className="max-w-full truncate rounded bg-raise px-1.5 py-0.5 text-xs text-soft">
            {skill}
          </bdi>
        ))}
        {skills.length > 5 ? <span className="px-1 py-0.5 text-xs text-faint">+{skills.length - 5}</span> : null}
        <Time at={seenAt} className="ml-auto py-0.5 text-xs text-faint" />
      </span>
    </Link>
  )
}
