import type { wire } from '@impresario/client'
import { parseExact } from '@impresario/protocol'
import type { DurationsBody } from '@impresario/protocol'
import { Link, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { duration } from '../data/format.ts'
import { useBlueprint, useBlueprints, useDurations, useJobs, useStart, useStateCounts } from '../data/queries.ts'
import type { StateCounts } from '../data/queries.ts'
import { useAddress, useParam } from '../data/search.ts'
import { useMayCommand } from '../data/session.ts'
import { GraphView } from '../graph/graph-view.tsx'
import { JsonField } from '../job/json-field.tsx'
import { JobRow } from '../job/job-row.tsx'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Select } from '../ui/field.tsx'
import { written } from '../ui/json.tsx'
import { Failure, Loading, PageHead, Panel, Tabs, Time } from '../ui/parts.tsx'
import { initialValue, SchemaForm } from '../ui/schema-form.tsx'
import type { FormSchema, FormValue } from '../ui/schema-form.tsx'
import { useSay } from '../ui/toast.tsx'

export function BlueprintPage(): ReactNode {
  const name = useParam('name')
  const { t, language } = useText()
  const [search, change] = useAddress()
  const version = search['version'] === undefined ? undefined : Number(search['version'])
  const { data: blueprint, error } = useBlueprint(name, version)
  const { data: all } = useBlueprints()
  const { data: open } = useStateCounts(name)
  const since = Math.floor(Date.now() / 3_600_000) * 3_600 - DURATION_DAYS * 86_400
  const { data: durations } = useDurations({ blueprint: name, since })
  const recent = useJobs({ blueprint: name }, 15)
  const mayCommand = useMayCommand()
  const took = useMemo(
    () => new Map(durations?.states.map(({ state, p50_ms: p50 }) => [state, `p50 ${duration(p50, language)}`])),
    [durations, language],
  )
  const versions = (all ?? []).filter((one) => one.name === name).map((one) => one.version)
  const isStarting = search['start'] === '1'
  if (error !== null) return <Failure error={error} />
  if (blueprint === undefined) return <Loading />
  return (
    <>
      <PageHead title={<bdi>{name}</bdi>} note={t('blueprints.states', { n: blueprint.states.length })}>
        {versions.length > 1 ? (
          <Select
            label={t('blueprints.version')}
            isLabelHidden
            value={String(blueprint.version)}
            onChange={({ target }) => change({ version: target.value })}
          >
            {versions.map((one) => (
              <option key={one} value={one}>{`v${one}`}</option>
            ))}
          </Select>
        ) : null}
        {mayCommand ? (
          <Button tone="primary" icon="run" onClick={() => change({ start: '1' })}>
            {t('jobs.start')}
          </Button>
        ) : null}
      </PageHead>
      <div className="grid gap-4 xl:grid-cols-[minmax(0,5fr)_minmax(0,6fr)]">
        <Panel flush title={t('job.graph')} className="overflow-hidden">
          <GraphView blueprint={blueprint} heat={open?.counts} took={took} className="h-[24rem] xl:h-[36rem]" />
        </Panel>
        <div className="flex min-w-0 flex-col gap-4">
          <Durations durations={durations} states={blueprint.states.map((state) => state.name)} open={open} />
          <Panel
            flush
            title={t('home.recent')}
            className="@container overflow-hidden"
            actions={
              <Link to="/jobs" search={{ blueprint: name }} className="text-accent hover:underline">
                {t('home.allJobs')}
              </Link>
            }
          >
            <ul>
              {(recent.data?.pages[0]?.items ?? []).map((job) => (
                <li key={job.job_id} className="border-b border-line last:border-b-0">
                  <JobRow job={job} />
                </li>
              ))}
            </ul>
          </Panel>
        </div>
      </div>
      {isStarting ? <StartDialog blueprint={blueprint} close={() => change({ start: undefined }, true)} /> : null}
    </>
  )
}

const DURATION_DAYS = 7

/** How many jobs are in each state, and how long they stay there. */
function Durations({
  durations,
  states,
  open,
}: {
  readonly durations: DurationsBody | undefined
  readonly states: readonly string[]
  readonly open: StateCounts | undefined
}): ReactNode {
  const { t, language } = useText()
  const numbers = new Intl.NumberFormat(language)
  const [job] = durations?.blueprints ?? []
  const rows = states.flatMap((state) => {
    const took = durations?.states.find((one) => one.state === state)
    const jobs = open?.counts.get(state) ?? 0
    return took === undefined && jobs === 0 ? [] : [{ state, jobs, took }]
  })
  return (
    <Panel flush title={t('blueprint.durations', { n: DURATION_DAYS })} className="overflow-hidden">
      {rows.length === 0 ? <p className="px-4 py-5 text-soft">{t('blueprint.noDurations')}</p> : null}
      {rows.length === 0 ? null : (
        <div
          className="overflow-x-auto"
          tabIndex={0}
          role="region"
          aria-label={t('blueprint.durations', { n: DURATION_DAYS })}
        >
          <table className="num w-full text-right">
            <thead className="bg-raise/50 text-xs text-faint">
              <tr>
                <th className="px-4 py-1.5 text-left font-medium">{t('jobs.column.state')}</th>
                <th className="px-2 py-1.5 whitespace-nowrap sm:px-3 font-medium">{t('blueprint.now')}</th>
                <th className="px-2 py-1.5 whitespace-nowrap sm:px-3 font-medium">{t('blueprint.visits')}</th>
                <th className="px-2 py-1.5 whitespace-nowrap sm:px-3 font-medium">p50</th>
                <th className="py-1.5 pr-4 pl-2 whitespace-nowrap sm:px-4 font-medium">p95</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ state, jobs, took }) => (
                <tr key={state} className="border-t border-line">
                  <th scope="row" className="px-4 py-1.5 text-left font-medium [overflow-wrap:anywhere]">
                    <bdi>{state}</bdi>
                  </th>
                  <td
                    className={`px-2 py-1.5 whitespace-nowrap sm:px-3 ${jobs === 0 ? 'text-faint' : 'font-medium text-info'}`}
                  >
                    {numbers.format(jobs)}
                    {open?.isPartial === true && jobs > 0 ? '+' : ''}
                  </td>
                  <td className="px-2 py-1.5 whitespace-nowrap sm:px-3 text-soft">
                    {numbers.format(took?.count ?? 0)}
                  </td>
                  <td className="px-2 py-1.5 whitespace-nowrap sm:px-3">
                    {took === undefined ? '–' : duration(took.p50_ms, language)}
                  </td>
                  <td className="py-1.5 pr-4 pl-2 whitespace-nowrap sm:px-4">
                    {took === undefined ? '–' : duration(took.p95_ms, language)}
                  </td>
                </tr>
              ))}
              {job === undefined ? null : (
                <tr className="border-t border-line bg-raise/50">
                  <th scope="row" className="px-4 py-1.5 text-left font-medium">
                    {t('blueprint.whole')}
                  </th>
                  <td />
                  <td className="px-2 py-1.5 whitespace-nowrap sm:px-3 text-soft">
                    {numbers.format(job.count + job.failed)}
                  </td>
                  <td className="px-2 py-1.5 whitespace-nowrap sm:px-3">{duration(job.p50_ms, language)}</td>
                  <td className="py-1.5 pr-4 pl-2 whitespace-nowrap sm:px-4">{duration(job.p95_ms, language)}</td>
                </tr>
              )}
            </tbody>
          </table>
        </div>
      )}
      {durations?.is_partial === true ? (
        <p className="border-t border-line px-4 py-2 text-xs text-soft">
          {t('home.partial')} <Time at={durations.since} />
        </p>
      ) : null}
    </Panel>
  )
}

type Way = 'form' | 'json'

/** A job with input that is checked while it is typed, and again by the server. */
function StartDialog({
  blueprint,
  close,
}: {
  readonly blueprint: wire.BlueprintView
  readonly close: () => void
}): ReactNode {
  const { t } = useText()
  const say = useSay()
  const start = useStart()
  const navigate = useNavigate()
  const schema = (blueprint.input_schema ?? undefined) as FormSchema | undefined
  const hasForm = Object.keys(schema?.properties ?? {}).length > 0
  const [way, setWay] = useState<Way>(hasForm ? 'form' : 'json')
  const [value, setValue] = useState<FormValue>(() => (schema === undefined ? {} : initialValue(schema)))
  const [text, setText] = useState(() => written(value))
  const [problems, setProblems] = useState<Readonly<Record<string, string | undefined>>>({})
  const problem = way === 'json' ? problemIn(text) : Object.values(problems).find((one) => one !== undefined)
  const choose = (next: Way): void => {
    if (next === 'json') setText(written(value))
    else if (problemIn(text) === undefined) setValue(parseExact(text) as FormValue)
    setWay(next)
  }
  return (
    <Dialog title={t('start.title', { name: blueprint.name })} close={close} isWide>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          start.mutate(
            { blueprint: blueprint.name, initial_data: way === 'json' ? parseExact(text) : value },
            {
              onSuccess: ({ job_id: id }) => {
                void navigate({ to: '/jobs/$id', params: { id } })
              },
              onError: (error) => say(error, true),
            },
          )
        }}
      >
        {hasForm ? (
          <Tabs<Way>
            label={t('start.way')}
            chosen={way}
            choose={choose}
            tabs={[
              ['form', t('start.form')],
              ['json', 'JSON'],
            ]}
          />
        ) : (
          <p className="text-soft">{t('start.noSchema')}</p>
        )}
        {way === 'form' && schema !== undefined ? (
          <SchemaForm
            schema={schema}
            value={value}
            change={setValue}
            report={(name, said) => setProblems((before) => ({ ...before, [name]: said }))}
          />
        ) : (
          <JsonField label={t('job.input')} text={text} change={setText} problem={problemIn(text)} rows={12} />
        )}
        {start.error === null ? null : <Failure error={start.error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{t('common.back')}</Button>
          <Button type="submit" tone="primary" icon="run" disabled={start.isPending || problem !== undefined}>
            {t('jobs.start')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function problemIn(text: string): string | undefined {
  try {
    const value = parseExact(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? undefined : '{ … }'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
