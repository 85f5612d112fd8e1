import type { wire } from '@impresario/client'
import type { JobBody } from '@impresario/protocol'
import { Link } from '@tanstack/react-router'
import { useMemo, useRef } from 'react'
import type { ReactNode } from 'react'
import { ApiError } from '../data/api.ts'
import { duration, shortId, useNow } from '../data/format.ts'
import { automationIn } from '../data/automation-name.ts'
import { useBlueprint, useExplanation, useJob, useJobHistory } from '../data/queries.ts'
import { useAddress, useParam } from '../data/search.ts'
import { GraphView } from '../graph/graph-view.tsx'
import { useText } from '../text/text.tsx'
import { CopyButton, Empty, Failure, Loading, Panel, Tabs, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { LinkButton } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { AttemptList } from './attempts.tsx'
import { DataSteps } from './data-steps.tsx'
import { JobActions } from './job-actions.tsx'
import { JobName } from './job-name.tsx'
import { JobData } from './job-data.tsx'
import { JobFiles } from './job-files.tsx'
import { JobLog } from './job-log.tsx'
import { livedBlueprint } from './lived.ts'
import { pathOf, spansOf } from './path.ts'
import type { Span } from './path.ts'
import { EventLog, Timeline } from './timeline.tsx'
import { TaskList, WhyItWaits } from './waiting.tsx'

export function JobPage(): ReactNode {
  const id = useParam('id')
  const { t } = useText()
  const { data: job, error, refetch } = useJob(id)
  if (error !== null) {
    // What is known stays while the server is away; the menu says that it is.
    if (job !== undefined && error instanceof ApiError && error.status === 0) return <LoadedJob job={job} />
    if (error instanceof ApiError && error.status === 404) {
      return (
        <Empty icon="search" title={t('job.gone')} isPage>
          <p className="mb-4">{t('job.goneNote')}</p>
          <LinkButton to="/jobs">{t('nav.jobs')}</LinkButton>
        </Empty>
      )
    }
    return <Failure error={error} retry={refetch} />
  }
  if (job === undefined) return <Loading rows={9} />
  return <LoadedJob job={job} />
}

function LoadedJob({ job }: { readonly job: JobBody }): ReactNode {
  // A question or an error stands there already.
  const isWaiting = job.ended_at === undefined && job.approval === undefined && job.status !== 'quarantined'
  return (
    <div className="flex flex-col gap-4">
      <JobHead job={job} />
      {job.approval === undefined ? null : <ApprovalCard job={job} approval={job.approval} />}
      <Trouble job={job} />
      {isWaiting ? <WhyItWaits job={job} /> : null}
      <JobBodyView job={job} />
    </div>
  )
}

function JobHead({ job }: { readonly job: JobBody }): ReactNode {
  const { t, language } = useText()
  const now = useNow(job.ended_at === undefined ? 1_000 : 600_000)
  const { parent_job_id: parent } = job
  return (
    <header className="flex flex-wrap items-start justify-between gap-x-4 gap-y-3">
      <div className="min-w-0">
        <nav aria-label={t('job.place')} className="mb-1 flex items-center gap-1 text-xs text-faint">
          <Link to="/jobs" className="hover:text-ink hover:underline">
            {t('nav.jobs')}
          </Link>
          <Icon name="right" className="size-3" />
          {parent === undefined ? null : (
            <>
              <Link to="/jobs/$id" params={{ id: parent }} className="font-mono hover:text-ink hover:underline">
                {shortId(parent)}
              </Link>
              <Icon name="right" className="size-3" />
            </>
          )}
          <span className="font-mono">{shortId(job.job_id)}</span>
          <CopyButton text={job.job_id} label={t('job.copyId')} />
        </nav>
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
          <h1 className="text-xl font-semibold tracking-tight [overflow-wrap:anywhere]">
            <JobTitle job={job} />
          </h1>
          <StatusBadge status={job.status} />
        </div>
        <p className="mt-1 flex flex-wrap gap-x-4 gap-y-1 text-soft">
          <span>
            {t('job.inState')} <bdi className="font-medium text-ink">{job.current_state}</bdi>
          </span>
          <span>
            {t('job.created')} <Time at={job.created_at} />
          </span>
          <span className="num">
            {t('jobs.column.took')} {duration(((job.ended_at ?? now / 1_000) - job.created_at) * 1_000, language)}
          </span>
          <span>v{job.blueprint_version}</span>
          {job.owner === undefined ? null : (
            <span>
              {t('jobs.owner')} <bdi>{job.owner}</bdi>
            </span>
          )}
          {automationIn(job.blueprint_name) === undefined ? null : (
            <Link to="/runs/$id" params={{ id: job.job_id }} className="text-accent hover:underline">
              {t('job.run')}
            </Link>
          )}
        </p>
      </div>
      <JobActions job={job} />
    </header>
  )
}

/** It leads to what the job is made of: its blueprint, or the automation whose run it is. */
function JobTitle({ job }: { readonly job: JobBody }): ReactNode {
  const automation = automationIn(job.blueprint_name)
  const name = <JobName blueprint={job.blueprint_name} />
  return automation === undefined ? (
    <Link to="/blueprints/$name" params={{ name: job.blueprint_name }} className="hover:underline">
      {name}
    </Link>
  ) : (
    <Link to="/automations/$id" params={{ id: automation }} className="hover:underline">
      {name}
    </Link>
  )
}

/** What went wrong, where it did. */
function Trouble({ job }: { readonly job: JobBody }): ReactNode {
  const { t } = useText()
  const { failure, error_message: message, error_code: code } = job
  if (message === undefined && failure === undefined) return null
  const isOver = job.status === 'finished'
  return (
    <section
      className={`rounded-xl border px-4 py-3 ${isOver ? 'border-line bg-panel' : 'border-transparent bg-bad-tint'}`}
      aria-label={t('job.trouble')}
    >
      <p className={`flex items-center gap-2 font-semibold ${isOver ? '' : 'text-bad'}`}>
        <Icon name="alert" />
        {code ?? failure?.code}
        <span className="font-normal">
          {failure === undefined ? '' : t('job.failedIn', { state: failure.state, n: failure.attempts })}
        </span>
      </p>
      <p className="mt-1 max-h-40 overflow-y-auto [overflow-wrap:anywhere] whitespace-pre-wrap">
        <bdi>{message ?? failure?.message}</bdi>
      </p>
      {failure?.child === undefined ? null : (
        <Link to="/jobs/$id" params={{ id: failure.child.job_id }} className="mt-1 inline-block text-accent underline">
          <JobName blueprint={failure.child.blueprint_name} /> {shortId(failure.child.job_id)}
        </Link>
      )}
    </section>
  )
}

/** The same object for as long as nothing new is in it: placing a graph is work. */
function useLived(blueprint: wire.BlueprintView | undefined, spans: readonly Span[]): wire.BlueprintView | undefined {
  const kept = useRef<{ readonly of: wire.BlueprintView; readonly text: string; readonly lived: wire.BlueprintView }>(
    undefined,
  )
  if (blueprint === undefined) return undefined
  const lived = livedBlueprint(blueprint, spans)
  const text = JSON.stringify(lived.states.map(({ tasks, children }) => [tasks, children]))
  if (kept.current?.of !== blueprint || kept.current.text !== text) kept.current = { of: blueprint, text, lived }
  return kept.current.lived
}

/** A run is shown step by step on a page of its own; and a blueprint may not be on the server any more. */
function NoGraph({ job, isRun }: { readonly job: JobBody; readonly isRun: boolean }): ReactNode {
  const { t } = useText()
  if (!isRun) {
    return (
      <Empty icon="blueprint" title={t('job.noBlueprint')}>
        {t('job.noBlueprintNote')}
      </Empty>
    )
  }
  return (
    <Empty icon="run" title={t('job.isRun')}>
      <LinkButton to="/runs/$id" params={{ id: job.job_id }}>
        {t('job.run')}
      </LinkButton>
    </Empty>
  )
}

const TABS = ['timeline', 'tasks', 'log', 'data', 'files', 'events', 'raw'] as const
type Tab = (typeof TABS)[number]

function JobBodyView({ job }: { readonly job: JobBody }): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const isRun = automationIn(job.blueprint_name) !== undefined
  const { data: blueprint, isError: isUnknown } = useBlueprint(job.blueprint_name, job.blueprint_version, !isRun)
  const { data: events = [] } = useJobHistory(job.job_id, job.version)
  const { data: why } = useExplanation(job.job_id, job.version)
  const now = useNow(job.ended_at === undefined ? 1_000 : 600_000) / 1_000
  const path = useMemo(() => pathOf(job, events, now), [job, events, now])
  const spans = useMemo(() => spansOf(path, events), [path, events])
  const lived = useLived(blueprint, spans)
  const tab = TABS.find((one) => one === search['tab']) ?? 'timeline'
  const state = search['state']
  const choose = (next: string | undefined): void => change({ state: next }, true)
  return (
    <div className="grid gap-4 xl:grid-cols-[minmax(0,5fr)_minmax(0,6fr)]">
      <Panel flush title={t('job.graph')} className="overflow-hidden">
        {isRun || isUnknown ? (
          <NoGraph job={job} isRun={isRun} />
        ) : blueprint === undefined ? (
          <Loading rows={6} />
        ) : (
          <GraphView
            blueprint={lived ?? blueprint}
            path={path}
            current={{ state: job.current_state, status: job.status }}
            chosen={state}
            choose={choose}
            className="h-[24rem] xl:h-[36rem]"
          />
        )}
      </Panel>
      <Panel flush className="overflow-hidden">
        <div className="px-2 pt-1">
          <Tabs<Tab>
            label={t('job.parts')}
            chosen={tab}
            choose={(next) => change({ tab: next === 'timeline' ? undefined : next }, true)}
            tabs={TABS.map((one) =>
              one === 'events' && events.length > 0
                ? [one, t(`job.tab.${one}`), events.length]
                : one === 'tasks' && (why?.tasks.length ?? 0) > 0
                  ? [one, t(`job.tab.${one}`), why?.tasks.length ?? 0]
                  : [one, t(`job.tab.${one}`)],
            )}
          />
        </div>
        <div role="tabpanel" aria-label={t(`job.tab.${tab}`)}>
          {state === undefined ? null : (
            <p className="flex items-center gap-2 border-b border-line px-4 py-2 text-soft">
              {t('job.onlyState')} <bdi className="font-medium text-ink">{state}</bdi>
              <button type="button" className="text-accent underline" onClick={() => choose(undefined)}>
                {t('job.allStates')}
              </button>
            </p>
          )}
          {tab === 'timeline' ? (
            <Timeline spans={spans} from={job.created_at} until={job.ended_at ?? now} chosen={state} choose={choose} />
          ) : null}
          {tab === 'tasks' ? (
            <>
              <TaskList why={why} isOpen={job.ended_at === undefined} />
              <AttemptList events={events} state={state} isOpen={job.ended_at === undefined} />
            </>
          ) : null}
          {tab === 'log' ? <JobLog job={job} state={state} /> : null}
          {tab === 'data' ? (
            <JobData job={job}>
              <DataSteps events={events} state={state} />
            </JobData>
          ) : null}
          {tab === 'files' ? <JobFiles job={job} /> : null}
          {tab === 'events' ? (
            <EventLog
              events={state === undefined ? events : events.filter((event) => event.state === state)}
              begin={job.created_at}
            />
          ) : null}
          {tab === 'raw' ? <JobData job={job} isRaw /> : null}
        </div>
      </Panel>
    </div>
  )
}
