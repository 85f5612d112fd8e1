import type { wire } from '@impresario/client'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { useRun } from '../data/automation-queries.ts'
import type { RunBody, RunStep } from '../data/automation-queries.ts'
import { duration } from '../data/format.ts'
import { usePost } from '../data/queries.ts'
import { useMayCommand } from '../data/session.ts'
import { useParam } from '../data/search.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { JsonView } from '../ui/json.tsx'
import { Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { useSay } from '../ui/toast.tsx'

/** Every step with what went in, what came out, and what its condition looked at. */
export function RunPage(): ReactNode {
  const id = useParam('id')
  const { t, language } = useText()
  const { data: run, error } = useRun(id)
  if (error !== null) return <Failure error={error} />
  if (run === undefined) return <Loading />
  return (
    <>
      <PageHead
        title={
          <span className="flex flex-wrap items-center gap-3">
            <Link to="/automations/$id" params={{ id: run.automation_id }} className="hover:underline">
              <bdi>{run.title}</bdi>
            </Link>
            <StatusBadge status={run.status} />
          </span>
        }
        note={
          <>
            {t(`runs.by.${run.trigger.kind}`)} · <Time at={run.created_at} />
            {run.ended_at === null ? '' : ` · ${duration((run.ended_at - run.created_at) * 1_000, language)}`}
          </>
        }
      >
        <RunAgain run={run} />
        <CancelRun run={run} />
      </PageHead>
      {run.error === null ? null : <Failure error={new Error(`${run.error.code}: ${run.error.message}`)} />}
      <div className="mt-4 grid gap-4 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <Panel flush title={t('runs.steps')} className="overflow-hidden">
          <Steps steps={run.steps} run={run} />
        </Panel>
        <div className="flex flex-col gap-4">
          <Panel title={t('job.result')}>
            <JsonView value={run.output} label={t('job.result')} />
          </Panel>
          <Panel title={t('runs.trigger')}>
            <JsonView value={run.trigger} label={t('runs.trigger')} />
          </Panel>
          {run.attempts.map(({ attempt, steps }) => (
            <Panel key={attempt} flush title={t('tasks.attempt', { n: attempt })} className="overflow-hidden">
              <Steps steps={steps} />
            </Panel>
          ))}
        </div>
      </div>
    </>
  )
}

/** With its event and params, and the steps that the automation has now; from a step on, the outputs before it are kept. */
function RunAgain({ run, from }: { readonly run: RunBody; readonly from?: string }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const post = usePost()
  const navigate = useNavigate()
  const mayCommand = useMayCommand()
  if (!mayCommand || run.ended_at === null) return null
  const begun = (answer: unknown): void => {
    const { run_id: id, reason } = answer as wire.LaunchedBody
    if (id === null) say(reason ?? t('runs.skipped'), true)
    else void navigate({ to: '/runs/$id', params: { id } })
  }
  return (
    <Button
      icon="run"
      size={from === undefined ? 'normal' : 'small'}
      disabled={post.isPending}
      onClick={() =>
        post.mutate(
          { path: `runs/${encodeURIComponent(run.id)}/rerun`, body: from === undefined ? {} : { from } },
          { onSuccess: begun, onError: (error) => say(error, true) },
        )
      }
    >
      {t(from === undefined ? 'job.again' : 'runs.againFrom')}
    </Button>
  )
}

function CancelRun({ run }: { readonly run: RunBody }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const post = usePost()
  const mayCommand = useMayCommand()
  if (!mayCommand || run.ended_at !== null) return null
  return (
    <Button
      tone="danger"
      icon="stop"
      onClick={() =>
        post.mutate(
          { path: `runs/${encodeURIComponent(run.id)}/cancel`, body: {} },
          { onSuccess: () => say(t('common.done')), onError: (error) => say(error, true) },
        )
      }
    >
      {t('job.cancel')}
    </Button>
  )
}

function Steps({
  steps,
  run,
}: {
  readonly steps: readonly RunStep[]
  /** Of the last attempt, whose steps can be begun at again. */
  readonly run?: RunBody
}): ReactNode {
  const { t } = useText()
  if (steps.length === 0) return <p className="px-4 py-5 text-soft">{t('runs.noSteps')}</p>
  return (
    <ol>
      {steps.map((step) => (
        <Step key={`${step.id} ${step.started_at}`} step={step} run={run} />
      ))}
    </ol>
  )
}

function Step({ step, run }: { readonly step: RunStep; readonly run: RunBody | undefined }): ReactNode {
  const { t, language } = useText()
  const [isOpen, setOpen] = useState(step.status === 'failed')
  const took = step.ended_at === null ? undefined : Date.parse(step.ended_at) - Date.parse(step.started_at)
  return (
    <li className="border-b border-line last:border-b-0">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-3 px-4 py-2.5 text-left hover:bg-raise"
      >
        <Icon name={isOpen ? 'down' : 'right'} className="size-3.5 text-faint" />
        <bdi className="min-w-0 flex-1 truncate font-medium">{step.id}</bdi>
        {step.attempts > 1 ? (
          <span className="text-xs text-soft">{t('tasks.attempt', { n: step.attempts })}</span>
        ) : null}
        <span className="num text-xs text-soft">{took === undefined ? '' : duration(took, language)}</span>
        <StatusBadge status={step.status} />
      </button>
      {isOpen ? (
        <div className="flex flex-col gap-3 px-4 pb-4 pl-10">
          {step.error === null ? null : (
            <p className="[overflow-wrap:anywhere] text-bad">
              {step.error.code}: <bdi>{step.error.message}</bdi>
            </p>
          )}
          {(
            [
              [t('runs.condition'), step.condition],
              [t('runs.input'), step.input],
              [t('runs.output'), step.output],
            ] as const
          ).map(([title, value]) =>
            value === null ? null : (
              <div key={title}>
                <h3 className="mb-1 text-xs font-medium text-faint">{title}</h3>
                <JsonView value={value} label={title} />
              </div>
            ),
          )}
          {run === undefined ? null : (
            <div>
              <RunAgain run={run} from={step.id} />
            </div>
          )}
        </div>
      ) : null}
    </li>
  )
}
