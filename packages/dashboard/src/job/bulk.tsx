import type { ListedJobBody } from '@impresario/protocol'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { shortId } from '../data/format.ts'
import { useBulk, useCancel } from '../data/queries.ts'
import { useMayCommand } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { useSay } from '../ui/toast.tsx'
import { JobName } from './job-name.tsx'

type Verb = 'cancel' | 'retry' | 'discard'

/** What can be done with the chosen jobs, with a look at them before. */
export function BulkBar({
  jobs,
  clear,
}: {
  readonly jobs: readonly ListedJobBody[]
  readonly clear: () => void
}): ReactNode {
  const { t } = useText()
  const mayCommand = useMayCommand()
  const [verb, setVerb] = useState<Verb>()
  const fitting: Readonly<Record<Verb, readonly ListedJobBody[]>> = {
    cancel: jobs.filter(({ ended_at: ended }) => ended === undefined),
    retry: jobs.filter(({ status }) => status === 'quarantined'),
    discard: jobs.filter(({ status }) => status === 'quarantined'),
  }
  return (
    <div className="fixed inset-x-4 bottom-18 z-20 mx-auto flex max-w-2xl flex-wrap items-center gap-2 rounded-xl border border-edge bg-panel p-2 pl-4 shadow-xl md:bottom-6">
      <span className="num flex-1 font-medium">{t('bulk.chosen', { n: jobs.length })}</span>
      {(['cancel', 'retry', 'discard'] as const).map((one) => (
        <Button
          key={one}
          tone={one === 'retry' ? 'primary' : 'danger'}
          disabled={!mayCommand || fitting[one].length === 0}
          onClick={() => setVerb(one)}
        >
          {t(`bulk.${one}`, { n: fitting[one].length })}
        </Button>
      ))}
      <Button tone="quiet" onClick={clear}>
        {t('bulk.clear')}
      </Button>
      {verb === undefined ? null : (
        <Preview
          verb={verb}
          jobs={fitting[verb]}
          close={(isDone) => {
            setVerb(undefined)
            if (isDone) clear()
          }}
        />
      )}
    </div>
  )
}

const LISTED_MAX = 100

export function Preview({
  verb,
  jobs,
  close,
}: {
  readonly verb: Verb
  readonly jobs: readonly ListedJobBody[]
  readonly close: (isDone: boolean) => void
}): ReactNode {
  const { t } = useText()
  const say = useSay()
  const cancel = useCancel()
  const bulk = useBulk()
  const [done, setDone] = useState<number>()
  const run = async (): Promise<void> => {
    const failed = verb === 'cancel' ? await cancelAll() : await sendAll(verb)
    say(t('bulk.done', { n: jobs.length - failed, failed }), failed > 0)
    close(true)
  }
  const cancelAll = async (): Promise<number> => {
    let failed = 0
    for (const [index, { job_id: id }] of jobs.entries()) {
      setDone(index)
      await cancel.mutateAsync({ id }).catch(() => (failed += 1))
    }
    return failed
  }
  const sendAll = async (which: 'retry' | 'discard'): Promise<number> => {
    let failed = 0
    for (let begin = 0; begin < jobs.length; begin += 100) {
      setDone(begin)
      const ids = jobs.slice(begin, begin + 100).map(({ job_id: id }) => id)
      const { results } = await bulk.mutateAsync({ verb: which, ids })
      failed += results.filter((result) => 'error' in result).length
    }
    return failed
  }
  return (
    <Dialog title={t(`bulk.${verb}`, { n: jobs.length })} close={() => close(false)}>
      <p className="mb-3 text-soft">{t(`bulk.${verb}Note`)}</p>
      <ul className="mb-4 max-h-72 overflow-y-auto rounded-lg border border-line">
        {jobs.slice(0, LISTED_MAX).map((job) => (
          <li key={job.job_id} className="flex items-center gap-3 border-b border-line px-3 py-2 last:border-b-0">
            <span className="min-w-0 flex-1 truncate">
              <JobName blueprint={job.blueprint_name} className="font-medium" />{' '}
              <span className="font-mono text-xs text-faint">{shortId(job.job_id)}</span>
            </span>
            <StatusBadge status={job.status} />
          </li>
        ))}
        {jobs.length > LISTED_MAX ? (
          <li className="px-3 py-2 text-soft">{t('bulk.more', { n: jobs.length - LISTED_MAX })}</li>
        ) : null}
      </ul>
      <div className="flex justify-end gap-2">
        <Button onClick={() => close(false)}>{t('common.back')}</Button>
        <Button
          tone={verb === 'retry' ? 'primary' : 'danger'}
          disabled={done !== undefined}
          onClick={() => {
            run().catch((error: unknown) => {
              say(error, true)
              setDone(undefined)
            })
          }}
        >
          {done === undefined ? t(`bulk.${verb}`, { n: jobs.length }) : `${done} / ${jobs.length}`}
        </Button>
      </div>
    </Dialog>
  )
}
