import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { shortId } from '../data/format.ts'
import { HELD_LOOKED_AT, useEvents, useHeldJobs, useWorker, useWorkerHistory } from '../data/queries.ts'
import { useWorkerExplanation } from '../data/server-queries.ts'
import { readWorker, reputationIn, reputationsOf } from '../data/worker.ts'
import type { WorkerView } from '../data/worker.ts'
import { useParam } from '../data/search.ts'
import { eventWords } from '../text/event-words.ts'
import { JobRow } from '../job/job-row.tsx'
import { lackWords, workerWords } from '../text/reason-words.ts'
import { useText } from '../text/text.tsx'
import { LinkButton } from '../ui/button.tsx'
import { JsonView } from '../ui/json.tsx'
import { Icon } from '../ui/icon.tsx'
import { Lines } from '../ui/lines.tsx'
import { Bar, Empty, Fact, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'

export function WorkerPage(): ReactNode {
  const id = useParam('id')
  const { t } = useText()
  const { data, error } = useWorker(id)
  if (error !== null) {
    return (
      <>
        <PageHead title={<bdi className="[overflow-wrap:anywhere]">{id}</bdi>} />
        <Empty icon="workers" title={t('worker.gone')}>
          <p className="mb-4">{t('worker.goneNote')}</p>
          <LinkButton to="/workers">{t('nav.workers')}</LinkButton>
        </Empty>
        <div className="grid items-start gap-4 xl:grid-cols-2">
          <Why id={id} />
          <History id={id} />
        </div>
      </>
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
        <Why id={id} />
        {worker.load > 0 ? <Holds id={id} /> : null}
        <Doings id={id} />
        <History id={id} />
        <Panel title={t('job.tab.raw')} className="xl:col-span-2">
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
          <span className="num">{percent(reputation)}</span>
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

/** What keeps it from tasks, and which ones it could take. */
function Why({ id }: { readonly id: string }): ReactNode {
  const { t, language } = useText()
  const { data, error } = useWorkerExplanation(id)
  // Of a worker that is gone and forgotten there is nothing to say.
  if (error !== null && data === undefined) return null
  return (
    <Panel flush title={t('why.title')} className="overflow-hidden">
      {data === undefined ? (
        <Loading rows={2} />
      ) : (
        <>
          <ul className="flex flex-col gap-2 px-4 py-3">
            {data.reasons.map((reason) => (
              <li key={reason.code} className="flex items-start gap-2">
                <Icon
                  name={reason.code === 'no_tasks' ? 'check' : 'alert'}
                  className={`mt-0.5 size-4 shrink-0 ${reason.code === 'no_tasks' ? 'text-ok' : 'text-warn'}`}
                />
                {workerWords({ t, language }, reason)}
              </li>
            ))}
            {data.gets_tasks && data.reasons.length === 0 ? (
              <li className="flex items-start gap-2">
                <Icon name="check" className="mt-0.5 size-4 shrink-0 text-ok" />
                {t('why.ok')}
              </li>
            ) : null}
          </ul>
          {data.waiting === null || data.waiting.length === 0 ? null : (
            <>
              <h3 className="border-t border-line px-4 pt-3 pb-1 text-xs font-medium text-faint">{t('why.waiting')}</h3>
              <ul className="max-h-72 overflow-y-auto" tabIndex={0} aria-label={t('why.waiting')}>
                {data.waiting.map((work, index) => (
                  <li key={index} className="flex items-start gap-3 border-b border-line px-4 py-2 last:border-b-0">
                    <span className="num w-10 text-right font-semibold">
                      {work.waiting}
                      {work.is_exact ? '' : '+'}
                    </span>
                    <span className="min-w-0 flex-1">
                      <bdi className="block font-medium [overflow-wrap:anywhere]">{work.task_type}</bdi>
                      <span className={`block text-xs ${work.fits ? 'text-ok' : 'text-soft'}`}>
                        {work.fits ? t('why.fits') : lackWords(t, work.mismatches, work.reasons)}
                      </span>
                    </span>
                  </li>
                ))}
              </ul>
            </>
          )}
        </>
      )}
    </Panel>
  )
}

/** The jobs whose tasks it has in its hands. */
function Holds({ id }: { readonly id: string }): ReactNode {
  const { t } = useText()
  const { data } = useHeldJobs(id)
  return (
    <Panel flush title={t('worker.holds')} className="@container overflow-hidden xl:col-span-2">
      {data === undefined ? <Loading rows={2} /> : null}
      <ul className="max-h-80 overflow-y-auto">
        {data?.jobs.map((job) => (
          <li key={job.job_id} className="border-b border-line last:border-b-0">
            <JobRow job={job} />
          </li>
        ))}
      </ul>
      {data?.isPartial === true ? (
        <p className="border-t border-line px-4 py-2 text-xs text-soft">
          {t('worker.holdsPartly', { n: HELD_LOOKED_AT })}
        </p>
      ) : null}
      {data?.isPartial === false && data.jobs.length === 0 ? (
        <p className="px-4 py-5 text-soft">{t('worker.noHeld')}</p>
      ) : null}
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
              <span className="font-medium">{eventWords(t, event.event_type)}</span>
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
  const scores = reputationsOf(events.map(({ worker_info_snapshot: snapshot }) => snapshot))
  return (
    <Panel flush title={t('worker.history')} className="overflow-hidden">
      {scores.length < 2 ? null : (
        <div className="border-b border-line px-4 py-3">
          <Lines
            lines={[{ name: t('workers.reputation'), className: 'stroke-ok text-ok', values: scores }]}
            label={`${t('worker.scores')}: ${scores.map(percent).join(' → ')}`}
            written={percent}
            hasScale={false}
          />
          <p className="mt-1 text-xs text-faint">{t('worker.scores')}</p>
        </div>
      )}
      {events.length === 0 ? <p className="px-4 py-5 text-soft">{t('worker.noHistory')}</p> : null}
      <ul className="max-h-80 overflow-y-auto">
        {events.map((event) => (
          <li key={event.event_id} className="flex items-center gap-3 border-b border-line px-4 py-2 last:border-b-0">
            <span className="font-medium">{eventWords(t, event.event_type)}</span>
            <bdi className="min-w-0 flex-1 truncate text-soft">
              {event.event_type === 'reputation' ? scoreIn(event.worker_info_snapshot) : event.note}
            </bdi>
            <Time at={event.timestamp} className="text-faint" />
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

function scoreIn(snapshot: unknown): string {
  const score = reputationIn(snapshot)
  return score === undefined ? '' : percent(score)
}
