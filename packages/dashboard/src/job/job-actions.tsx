import type { JobBody } from '@impresario/protocol'
import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { automationIn } from '../data/automation-name.ts'
import { useCancel, useDiscard, useRetry } from '../data/queries.ts'
import { useMayCommand } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Input } from '../ui/field.tsx'
import { written } from '../ui/json.tsx'
import { useKeys } from '../ui/keys.tsx'
import { useSay } from '../ui/toast.tsx'
import { AgainDialog } from './again-dialog.tsx'
import { diffOf } from './data-diff.ts'
import type { DataChange } from './data-diff.ts'
import { ChangeList } from './data-steps.tsx'
import { JsonField, readText } from './json-field.tsx'

type Asked = 'cancel' | 'edit' | 'discard' | 'again'

/** What can be done with this job now. */
export function JobActions({ job }: { readonly job: JobBody }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const retry = useRetry()
  const mayCommand = useMayCommand()
  const [asked, setAsked] = useState<Asked>()
  const isQuarantined = job.status === 'quarantined'
  const isOpen = job.ended_at === undefined
  const retryNow = (): void =>
    retry.mutate({ id: job.job_id }, { onSuccess: () => say(t('job.retried')), onError: (error) => say(error, true) })
  const keys = useMemo(
    () => ({
      ...(isOpen && mayCommand ? { c: () => setAsked('cancel') } : {}),
      ...(isQuarantined && mayCommand ? { r: retryNow } : {}),
    }),
    [isOpen, isQuarantined, mayCommand, job.job_id],
  )
  useKeys(keys)
  if (!mayCommand) return null
  const close = (): void => setAsked(undefined)
  return (
    <div className="flex flex-wrap gap-2">
      {isQuarantined ? (
        <>
          <Button tone="primary" icon="retry" disabled={retry.isPending} onClick={retryNow}>
            {t('job.retry')}
          </Button>
          <Button icon="edit" onClick={() => setAsked('edit')}>
            {t('job.editRetry')}
          </Button>
          <Button tone="danger" icon="trash" onClick={() => setAsked('discard')}>
            {t('job.discard')}
          </Button>
        </>
      ) : null}
      {/* A run is begun again on its own page, by the rules of its automation. */}
      {automationIn(job.blueprint_name) === undefined ? (
        <Button icon="run" onClick={() => setAsked('again')}>
          {t('job.again')}
        </Button>
      ) : null}
      {isOpen && !isQuarantined ? (
        <Button tone="danger" icon="stop" onClick={() => setAsked('cancel')}>
          {t('job.cancel')}
        </Button>
      ) : null}
      {asked === 'cancel' ? <CancelDialog job={job} close={close} /> : null}
      {asked === 'discard' ? <DiscardDialog job={job} close={close} /> : null}
      {asked === 'edit' ? <EditDialog job={job} close={close} /> : null}
      {asked === 'again' ? <AgainDialog job={job} close={close} /> : null}
    </div>
  )
}

interface DialogProps {
  readonly job: JobBody
  readonly close: () => void
}

function CancelDialog({ job, close }: DialogProps): ReactNode {
  const { t } = useText()
  const say = useSay()
  const cancel = useCancel()
  const [reason, setReason] = useState('')
  return (
    <Dialog title={t('job.cancelTitle')} close={close}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          cancel.mutate(
            { id: job.job_id, reason: reason.trim() },
            {
              onSuccess: () => {
                say(t('job.cancelled'))
                close()
              },
              onError: (error) => say(error, true),
            },
          )
        }}
      >
        <p className="text-soft">{t('job.cancelNote')}</p>
        <Input
          label={t('job.reason')}
          value={reason}
          maxLength={500}
          autoFocus
          onChange={({ target }) => setReason(target.value)}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{t('common.back')}</Button>
          <Button type="submit" tone="danger" disabled={cancel.isPending}>
            {t('job.cancel')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function DiscardDialog({ job, close }: DialogProps): ReactNode {
  const { t } = useText()
  const say = useSay()
  const discard = useDiscard()
  return (
    <Dialog title={t('job.discard')} close={close}>
      <p className="mb-4 text-soft">{t('job.discardNote')}</p>
      <div className="flex justify-end gap-2">
        <Button onClick={close}>{t('common.back')}</Button>
        <Button
          tone="danger"
          disabled={discard.isPending}
          onClick={() => discard.mutate(job.job_id, { onSuccess: close, onError: (error) => say(error, true) })}
        >
          {t('job.discard')}
        </Button>
      </div>
    </Dialog>
  )
}

/** What somebody has changed in one part of the data; nothing while it cannot be read. */
function changesIn(part: string, before: unknown, { value }: ReturnType<typeof readText>): readonly DataChange[] {
  if (value === undefined) return []
  return diffOf(before ?? {}, value).map((change) => ({ ...change, path: [part, ...change.path] }))
}

function EditDialog({ job, close }: DialogProps): ReactNode {
  const { t } = useText()
  const say = useSay()
  const retry = useRetry()
  const [input, setInput] = useState(() => written(job.initial_data))
  const [history, setHistory] = useState(() => written(job.state_history))
  const readInput = readText(input)
  const readHistory = readText(history)
  const changes = useMemo(
    () => [
      ...changesIn(t('job.input'), job.initial_data, readInput),
      ...changesIn(t('job.stateHistory'), job.state_history, readHistory),
    ],
    [input, history, job, t],
  )
  const isChanged = input !== written(job.initial_data) || history !== written(job.state_history)
  return (
    <Dialog title={t('job.editRetry')} close={close} isWide>
      <div className="flex flex-col gap-4">
        <p className="text-soft">{t('job.editNote')}</p>
        <JsonField label={t('job.input')} text={input} change={setInput} problem={readInput.problem} />
        <JsonField label={t('job.stateHistory')} text={history} change={setHistory} problem={readHistory.problem} />
        {changes.length === 0 ? null : (
          <section
            aria-label={t('job.changes')}
            className="max-h-48 overflow-y-auto rounded-lg border border-line"
            tabIndex={0}
          >
            <h3 className="border-b border-line bg-raise/50 px-3 py-1.5 text-xs font-medium text-faint">
              {t('job.changes')}
            </h3>
            <ChangeList changes={changes} />
          </section>
        )}
        <div className="flex items-center justify-end gap-2">
          <Button onClick={close}>{t('common.back')}</Button>
          <Button
            tone="primary"
            disabled={retry.isPending || readInput.problem !== undefined || readHistory.problem !== undefined}
            onClick={() =>
              retry.mutate(
                {
                  id: job.job_id,
                  change: isChanged ? { initial_data: readInput.value, state_history: readHistory.value } : {},
                },
                {
                  onSuccess: () => {
                    say(t('job.retried'))
                    close()
                  },
                  onError: (error) => say(error, true),
                },
              )
            }
          >
            {t('job.retry')}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
