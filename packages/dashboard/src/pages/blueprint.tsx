import type { wire } from '@impresario/client'
import { parseExact } from '@impresario/protocol'
import { Link, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { useBlueprint, useBlueprints, useJobs, useStart } from '../data/queries.ts'
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
import { Failure, Loading, PageHead, Panel, Tabs } from '../ui/parts.tsx'
import { initialValue, SchemaForm } from '../ui/schema-form.tsx'
import type { FormSchema, FormValue } from '../ui/schema-form.tsx'
import { useSay } from '../ui/toast.tsx'
import { GROUPS } from '../job/job-filters.tsx'

export function BlueprintPage(): ReactNode {
  const name = useParam('name')
  const { t } = useText()
  const [search, change] = useAddress()
  const version = search['version'] === undefined ? undefined : Number(search['version'])
  const { data: blueprint, error } = useBlueprint(name, version)
  const { data: all } = useBlueprints()
  const open = useJobs({ blueprint: name, status: GROUPS.open }, 100)
  const recent = useJobs({ blueprint: name }, 15)
  const mayCommand = useMayCommand()
  const heat = useMemo(() => {
    const found = new Map<string, number>()
    for (const job of open.data?.pages.flatMap(({ items }) => items) ?? []) {
      found.set(job.current_state, (found.get(job.current_state) ?? 0) + 1)
    }
    return found
  }, [open.data])
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
          <GraphView blueprint={blueprint} heat={heat} className="h-[24rem] xl:h-[36rem]" />
        </Panel>
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
      {isStarting ? <StartDialog blueprint={blueprint} close={() => change({ start: undefined }, true)} /> : null}
    </>
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
              onError: (error) => say(error.message, true),
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
