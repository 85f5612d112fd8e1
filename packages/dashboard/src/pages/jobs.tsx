import type { ListedJobBody } from '@impresario/protocol'
import { useNavigate } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { useAddress } from '../data/search.ts'
import { useJobs } from '../data/queries.ts'
import { useMayCommand } from '../data/session.ts'
import { BulkBar } from '../job/bulk.tsx'
import { JobFilters } from '../job/job-filters.tsx'
import { isOldestFirst, queryOf } from '../job/job-query.ts'
import { columnsIn } from '../job/job-columns.ts'
import type { Column } from '../job/job-columns.ts'
import { gridStyle, JobRow, ROW_GRID } from '../job/job-row.tsx'
import { useText } from '../text/text.tsx'
import { LinkButton } from '../ui/button.tsx'
import { useKeys } from '../ui/keys.tsx'
import { More } from '../ui/more.tsx'
import { Code, Empty, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'

export function JobsPage(): ReactNode {
  const { t } = useText()
  const [search] = useAddress()
  const mayCommand = useMayCommand()
  const query = useMemo(() => queryOf(search), [search])
  const columns = useMemo(() => columnsIn(search['columns']), [search])
  return (
    <>
      <PageHead title={t('nav.jobs')} note={t(isOldestFirst(search) ? 'jobs.noteOldest' : 'jobs.note')}>
        {mayCommand ? (
          <LinkButton to="/blueprints" icon="plus" tone="primary">
            {t('jobs.start')}
          </LinkButton>
        ) : null}
      </PageHead>
      <JobFilters />
      <JobList key={JSON.stringify(query)} query={query} columns={columns} />
    </>
  )
}

/** Jobs, usually newest first. Those that come on top while somebody reads wait behind a button, so that no row moves away. */
function JobList({
  query,
  columns,
}: {
  readonly query: ReturnType<typeof queryOf>
  readonly columns: readonly Column[]
}): ReactNode {
  const { t } = useText()
  const jobs = useJobs(query)
  const { data, error, isPending, hasNextPage, refetch } = jobs
  const all = useMemo(() => data?.pages.flatMap(({ items }) => items) ?? [], [data])
  const [top, setTop] = useState<string>()
  const newest = all[0]?.job_id
  useEffect(() => {
    if (top === undefined && newest !== undefined) setTop(newest)
  }, [top, newest])
  const isGrowing = query['order'] !== 'oldest'
  const shown = useMemo(
    () => (top === undefined || !isGrowing ? all : all.filter(({ job_id: id }) => id <= top)),
    [all, top, isGrowing],
  )
  const fresh = all.length - shown.length
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const showNew = (): void => setTop(newest)
  const active = useRowKeys(shown, { choose: (id) => setChosen((before) => toggled(before, id)), showNew })
  // What is known stays while the server is away; the menu says that it is.
  if (error !== null && data === undefined) return <Failure error={error} retry={refetch} />
  if (isPending) {
    return (
      <Panel flush>
        <Loading rows={8} />
      </Panel>
    )
  }
  const isFiltered = Object.keys(query).some((name) => name !== 'order')
  if (shown.length === 0 && !hasNextPage) return <NoJobs isFiltered={isFiltered} />
  return (
    <>
      <Panel flush className="@container overflow-hidden">
        <div className="flex items-center border-b border-line bg-raise/50">
          <ChooseAll
            isAll={shown.length > 0 && shown.every(({ job_id: id }) => chosen.has(id))}
            hasSome={chosen.size > 0}
            choose={(isAll) => setChosen(new Set(isAll ? shown.map(({ job_id: id }) => id) : []))}
          />
          <div
            className={`${ROW_GRID} hidden min-w-0 flex-1 py-2 pr-4 pl-4 text-xs font-medium text-faint @3xl:grid`}
            style={gridStyle(columns)}
            aria-hidden="true"
          >
            {columns.map((name) => (
              <span key={name} className={name === 'took' ? 'text-right' : ''}>
                {t(`jobs.column.${name}`)}
              </span>
            ))}
          </div>
        </div>
        {fresh === 0 ? null : (
          <button
            type="button"
            onClick={showNew}
            className="w-full border-b border-line bg-tint py-1.5 font-medium text-accent"
          >
            {t('jobs.new', { n: fresh })}
          </button>
        )}
        <Rows
          jobs={shown}
          columns={columns}
          active={active}
          chosen={chosen}
          choose={(id) => setChosen(toggled(chosen, id))}
        />
        <LookedBack to={data?.pages.at(-1)?.lookedBackTo} hasRows={shown.length > 0} />
        <More pages={jobs} label={data?.pages.at(-1)?.lookedBackTo === undefined ? 'common.more' : 'jobs.lookOn'} />
      </Panel>
      {chosen.size === 0 ? null : (
        <BulkBar jobs={shown.filter(({ job_id: id }) => chosen.has(id))} clear={() => setChosen(new Set())} />
      )}
    </>
  )
}

/** A search does not hold up other work: it ends after a while, and says how far it came. */
function LookedBack({ to, hasRows }: { readonly to: number | undefined; readonly hasRows: boolean }): ReactNode {
  const { t } = useText()
  if (to === undefined) return null
  return (
    <p role="note" className="px-4 py-3 text-center text-soft">
      {t(hasRows ? 'jobs.lookedBack' : 'jobs.noneSince')} <Time at={to} className="font-medium text-ink" />
    </p>
  )
}

function toggled(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set)
  if (!next.delete(id)) next.add(id)
  return next
}

/** Chooses all rows that are loaded, or none. */
function ChooseAll({
  isAll,
  hasSome,
  choose,
}: {
  readonly isAll: boolean
  readonly hasSome: boolean
  readonly choose: (all: boolean) => void
}): ReactNode {
  const { t } = useText()
  const box = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (box.current !== null) box.current.indeterminate = hasSome && !isAll
  }, [hasSome, isAll])
  return (
    <label className="flex h-8 shrink-0 cursor-pointer items-center gap-2 pl-4.5 text-xs text-faint">
      <input
        ref={box}
        type="checkbox"
        className="size-3.5 accent-(--fill)"
        checked={isAll}
        onChange={({ target }) => choose(target.checked)}
      />
      <span className="@3xl:sr-only">{t('bulk.choose')}</span>
    </label>
  )
}

/** Only the rows that can be seen are in the page, however many there are. */
function Rows({
  jobs,
  columns,
  active,
  chosen,
  choose,
}: {
  readonly jobs: readonly ListedJobBody[]
  readonly columns: readonly Column[]
  readonly active: string | undefined
  readonly chosen: ReadonlySet<string>
  readonly choose: (id: string) => void
}): ReactNode {
  const { t } = useText()
  const list = useRef<HTMLUListElement>(null)
  const [margin, setMargin] = useState(0)
  const isNarrow = matchMedia('(max-width: 767px)').matches
  useEffect(() => {
    const scroller = document.querySelector('#content')
    const box = list.current?.getBoundingClientRect()
    if (box !== undefined && scroller !== null) {
      setMargin(box.top - scroller.getBoundingClientRect().top + scroller.scrollTop)
    }
  }, [])
  const virtual = useVirtualizer({
    count: jobs.length,
    getScrollElement: () => document.querySelector('#content'),
    estimateSize: () => (isNarrow ? 58 : 42),
    overscan: 12,
    scrollMargin: margin,
    getItemKey: (index) => jobs[index]?.job_id ?? index,
  })
  useEffect(() => {
    const index = jobs.findIndex(({ job_id: id }) => id === active)
    if (index === -1) return
    virtual.scrollToIndex(index, { align: 'auto' })
    // The focus goes with it, so that Tab goes on from here, and Enter opens this row and not what was pressed before.
    const row = list.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(active ?? '')}"]`)
    if (row === null || row === undefined) (document.activeElement as HTMLElement | null)?.blur()
    else row.focus({ preventScroll: true })
  }, [active])
  return (
    <ul ref={list} aria-label={t('nav.jobs')} className="relative" style={{ height: virtual.getTotalSize() }}>
      {virtual.getVirtualItems().map(({ index, start, size, key }) => {
        const job = jobs[index]
        if (job === undefined) return null
        return (
          <li
            key={key}
            className="absolute inset-x-0 flex items-stretch border-b border-line last:border-b-0"
            style={{ height: size, transform: `translateY(${start - margin}px)` }}
          >
            <label className="flex w-8 shrink-0 cursor-pointer items-center justify-end">
              <input
                type="checkbox"
                className="size-3.5 accent-(--fill)"
                aria-label={`${t('keys.choose')} ${job.job_id}`}
                checked={chosen.has(job.job_id)}
                onChange={() => choose(job.job_id)}
              />
            </label>
            <div className="min-w-0 flex-1">
              <JobRow job={job} isActive={job.job_id === active} columns={columns} />
            </div>
          </li>
        )
      })}
    </ul>
  )
}

/** `j` and `k` walk over the rows, `Enter` opens one, `x` chooses it, `n` shows what is new. */
function useRowKeys(
  jobs: readonly ListedJobBody[],
  {
    choose,
    showNew,
  }: {
    readonly choose: (id: string) => void
    readonly showNew: () => void
  },
): string | undefined {
  const [active, setActive] = useState<string>()
  const navigate = useNavigate()
  const keys = useMemo(() => {
    const place = jobs.findIndex(({ job_id: id }) => id === active)
    const step = (by: number): void => setActive(jobs[Math.max(0, Math.min(jobs.length - 1, place + by))]?.job_id)
    return {
      j: () => step(1),
      k: () => step(-1),
      n: showNew,
      ...(active === undefined
        ? {}
        : {
            Enter: () => {
              void navigate({ to: '/jobs/$id', params: { id: active } })
            },
            x: () => choose(active),
          }),
    }
  }, [jobs, active, navigate, choose, showNew])
  useKeys(keys)
  return active
}

function NoJobs({ isFiltered }: { readonly isFiltered: boolean }): ReactNode {
  const { t } = useText()
  const mayCommand = useMayCommand()
  return (
    <Panel flush>
      {isFiltered ? (
        <Empty icon="search" title={t('jobs.noneFit')}>
          <p className="mb-4">{t('jobs.noneFitNote')}</p>
          <LinkButton to="/jobs">{t('jobs.all')}</LinkButton>
        </Empty>
      ) : (
        <Empty icon="jobs" title={t('jobs.none')}>
          <p className="mb-3">{t('jobs.noneNote')}</p>
          <p className="mb-4">
            <Code>impresario jobs start &lt;blueprint&gt;</Code>
          </p>
          {mayCommand ? (
            <LinkButton to="/blueprints" tone="primary">
              {t('jobs.start')}
            </LinkButton>
          ) : null}
        </Empty>
      )}
    </Panel>
  )
}
