import type { WireApproval } from '@impresario/protocol'
import { Link } from '@tanstack/react-router'
import { useMemo, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { ApiError } from '../data/api.ts'
import { shortId } from '../data/format.ts'
import { useJobName } from '../data/job-names.ts'
import { useDecide } from '../data/queries.ts'
import { useMayCommand } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { TextArea } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { useKeys } from '../ui/keys.tsx'
import { Time } from '../ui/parts.tsx'
import { initialValue, SchemaForm } from '../ui/schema-form.tsx'
import type { FormSchema, FormValue } from '../ui/schema-form.tsx'
import { useSay } from '../ui/toast.tsx'
import { JobName } from './job-name.tsx'
import { decisionWords, isRefusal } from './decisions.ts'

interface Asking {
  readonly job_id: string
  readonly blueprint_name: string
  readonly updated_at: number
}

/** What somebody can do with a question in the inbox instead of deciding it. */
export interface Aside {
  readonly isIgnored: boolean
  readonly toggle: () => void
}

/** What a job asks a person, with a button for each answer. Keys 1, 2, … press them; `r` leads to the reply. */
export function ApprovalCard({
  job,
  approval,
  isListed = false,
  isActive = true,
  aside,
}: {
  readonly job: Asking
  readonly approval: WireApproval
  readonly isListed?: boolean
  /** Whether the keys are for this one. */
  readonly isActive?: boolean
  readonly aside?: Aside
}): ReactNode {
  const { t } = useText()
  const say = useSay()
  const decide = useDecide()
  const mayCommand = useMayCommand()
  const jobName = useJobName(job.blueprint_name)
  const [comment, setComment] = useState('')
  const form: FormSchema | undefined = approval.form
  const [data, setData] = useState<FormValue>(() => (form === undefined ? {} : initialValue(form)))
  const [unreadable, setUnreadable] = useState<ReadonlySet<string>>(new Set())
  const fields = useRef<HTMLFormElement>(null)
  const reply = useRef<HTMLDivElement>(null)
  const needsForm = (decision: string): boolean => approval.form_for?.includes(decision) === true
  const problems = useMemo(() => problemsIn(decide.error), [decide.error])
  const answer = (decision: string): void => {
    if (!mayCommand || decide.isPending) return
    // The browser says what is missing, at its place.
    if (needsForm(decision) && (fields.current?.reportValidity() === false || unreadable.size > 0)) return
    decide.mutate(
      {
        id: job.job_id,
        decision,
        visit: approval.visit,
        ...(needsForm(decision) ? { data } : {}),
        ...(comment.trim() === '' ? {} : { comment: comment.trim() }),
      },
      {
        onSuccess: () => say(t('approvals.done', { decision: decisionWords(t, decision) })),
        onError: (error) => say(error, true),
      },
    )
  }
  const keys = useMemo(
    () =>
      isActive
        ? {
            ...Object.fromEntries(approval.decisions.map((name, index) => [String(index + 1), () => answer(name)])),
            r: () => reply.current?.querySelector('textarea')?.focus(),
            ...(aside === undefined ? {} : { i: aside.toggle }),
          }
        : {},
    [isActive, approval, comment, data, unreadable, job.job_id, mayCommand, decide.isPending, aside],
  )
  useKeys(keys)
  return (
    <section
      aria-label={`${t('approvals.question')}: ${jobName} ${shortId(job.job_id)}`}
      className={`rounded-xl border bg-panel p-4 shadow-card md:p-5 ${isActive && isListed ? 'border-accent' : 'border-line'}`}
    >
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-soft">
        <span className="flex items-center gap-1.5 font-semibold text-ask">
          <Icon name="person" className="size-3.5" />
          {t('approvals.asks')}
        </span>
        {isListed ? (
          <Link to="/jobs/$id" params={{ id: job.job_id }} className="[overflow-wrap:anywhere] hover:underline">
            <JobName blueprint={job.blueprint_name} className="font-medium text-ink" />{' '}
            <span className="font-mono">{shortId(job.job_id)}</span>
          </Link>
        ) : null}
        <Time at={job.updated_at} />
        {approval.expires_at === undefined ? null : (
          <span className="text-warn">
            {t('approvals.expires')} <Time at={approval.expires_at} />
          </span>
        )}
        {aside === undefined ? null : (
          <Button
            size="small"
            tone="quiet"
            icon={aside.isIgnored ? 'inbox' : 'hidden'}
            className="-my-1 ml-auto"
            onClick={aside.toggle}
          >
            {t(aside.isIgnored ? 'approvals.restore' : 'approvals.ignore')}
          </Button>
        )}
      </div>
      <p className="mb-4 max-h-60 overflow-y-auto text-base font-medium [overflow-wrap:anywhere] whitespace-pre-wrap">
        <bdi>{approval.message}</bdi>
      </p>
      {form === undefined || !approval.decisions.some(needsForm) ? null : (
        <form
          ref={fields}
          aria-label={t('approvals.form')}
          className="mb-4 max-w-xl"
          onSubmit={(event) => event.preventDefault()}
        >
          <SchemaForm
            schema={form}
            value={data}
            change={setData}
            problems={problems}
            report={(name, problem) => setUnreadable((before) => withProblem(before, name, problem))}
          />
        </form>
      )}
      <div className="flex flex-col gap-3 md:flex-row md:items-end">
        <div ref={reply} className="min-w-0 flex-1 md:min-w-48">
          <Reply text={comment} change={setComment} />
        </div>
        <div className="flex min-w-0 flex-wrap gap-2">
          {approval.decisions.map((name, index) => (
            <Button
              key={name}
              size="large"
              tone={isRefusal(name) ? 'danger' : index === 0 ? 'primary' : 'plain'}
              icon={isRefusal(name) ? 'close' : index === 0 ? 'check' : 'right'}
              disabled={!mayCommand || decide.isPending}
              className="h-auto min-h-11 max-w-full flex-1 py-1.5 [overflow-wrap:anywhere] whitespace-normal md:min-h-9 md:flex-none md:text-sm"
              onClick={() => answer(name)}
            >
              {decisionWords(t, name)}
            </Button>
          ))}
        </div>
      </div>
    </section>
  )
}

/** What the job is told with the decision: its handler finds it in `stateHistory.decision.comment`. */
function Reply({ text, change }: { readonly text: string; readonly change: (text: string) => void }): ReactNode {
  const { t } = useText()
  return (
    <TextArea
      label={t('approvals.comment')}
      isLabelHidden
      placeholder={t('approvals.comment')}
      maxLength={2_000}
      rows={text === '' ? 1 : Math.min(8, 1 + Math.max(text.split('\n').length, Math.ceil(text.length / 60)))}
      className="min-h-9"
      {...(text === '' ? {} : { note: t('approvals.replyNote') })}
      value={text}
      onChange={({ target }) => change(target.value)}
      // The keys decide again.
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.currentTarget.blur()
      }}
    />
  )
}

function withProblem(before: ReadonlySet<string>, name: string, problem: string | undefined): ReadonlySet<string> {
  const after = new Set(before)
  if (problem === undefined) after.delete(name)
  else after.add(name)
  return after
}

/** What the server said of the fields of the form, by their names. */
function problemsIn(error: Error | null): ReadonlyMap<string, string> {
  const problems = error instanceof ApiError ? error.problems : []
  return new Map(problems.map(({ field, message }) => [field.replace(/^data\./, ''), message]))
}
