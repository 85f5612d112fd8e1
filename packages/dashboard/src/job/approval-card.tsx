import type { WireApproval } from '@impresario/protocol'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { shortId } from '../data/format.ts'
import { useDecide } from '../data/queries.ts'
import { useMayCommand } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { TextArea } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { useKeys } from '../ui/keys.tsx'
import { Time } from '../ui/parts.tsx'
import { useSay } from '../ui/toast.tsx'
import { decisionWords, isRefusal } from './decisions.ts'

interface Asking {
  readonly job_id: string
  readonly blueprint_name: string
  readonly updated_at: number
}

/** What a job asks a person, with a button for each answer. Keys 1, 2, … press them. */
export function ApprovalCard({
  job,
  approval,
  isListed = false,
  isActive = true,
}: {
  readonly job: Asking
  readonly approval: WireApproval
  readonly isListed?: boolean
  /** Whether the keys are for this one. */
  readonly isActive?: boolean
}): ReactNode {
  const { t } = useText()
  const say = useSay()
  const decide = useDecide()
  const mayCommand = useMayCommand()
  const [comment, setComment] = useState('')
  const answer = (decision: string): void => {
    if (!mayCommand || decide.isPending) return
    decide.mutate(
      {
        id: job.job_id,
        decision,
        visit: approval.visit,
        ...(comment.trim() === '' ? {} : { comment: comment.trim() }),
      },
      {
        onSuccess: () => say(t('approvals.done', { decision: decisionWords(t, decision) })),
        onError: (error) => say(error.message, true),
      },
    )
  }
  const keys = useMemo(
    () =>
      isActive
        ? Object.fromEntries(approval.decisions.map((name, index) => [String(index + 1), () => answer(name)]))
        : {},
    [isActive, approval, comment],
  )
  useKeys(keys)
  return (
    <section
      aria-label={`${t('approvals.question')}: ${job.blueprint_name} ${shortId(job.job_id)}`}
      className={`rounded-xl border bg-panel p-4 shadow-card md:p-5 ${isActive && isListed ? 'border-accent' : 'border-line'}`}
    >
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-soft">
        <span className="flex items-center gap-1.5 font-semibold text-ask">
          <Icon name="person" className="size-3.5" />
          {t('approvals.asks')}
        </span>
        {isListed ? (
          <Link to="/jobs/$id" params={{ id: job.job_id }} className="hover:underline">
            <bdi className="font-medium text-ink">{job.blueprint_name}</bdi>{' '}
            <span className="font-mono">{shortId(job.job_id)}</span>
          </Link>
        ) : null}
        <Time at={job.updated_at} />
        {approval.expires_at === undefined ? null : (
          <span className="text-warn">
            {t('approvals.expires')} <Time at={approval.expires_at} />
          </span>
        )}
      </div>
      <p className="mb-4 max-h-60 overflow-y-auto text-base font-medium [overflow-wrap:anywhere] whitespace-pre-wrap">
        <bdi>{approval.message}</bdi>
      </p>
      <div className="flex flex-col gap-3 md:flex-row md:items-end">
        <div className="flex-1">
          <TextArea
            label={t('approvals.comment')}
            isLabelHidden
            placeholder={t('approvals.comment')}
            maxLength={2_000}
            rows={1}
            className="min-h-9"
            value={comment}
            onChange={({ target }) => setComment(target.value)}
          />
        </div>
        <div className="flex flex-wrap gap-2">
          {approval.decisions.map((name, index) => (
            <Button
              key={name}
              size="large"
              tone={isRefusal(name) ? 'danger' : index === 0 ? 'primary' : 'plain'}
              icon={isRefusal(name) ? 'close' : index === 0 ? 'check' : 'right'}
              disabled={!mayCommand || decide.isPending}
              className="flex-1 md:h-9 md:flex-none md:text-sm"
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
