import type { wire } from '@impresario/client'
import type { JobBody } from '@impresario/protocol'
import { useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { useJobName } from '../data/job-names.ts'
import { useBlueprint, useRerun } from '../data/queries.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { written } from '../ui/json.tsx'
import { useSay } from '../ui/toast.tsx'
import { JsonField, readText } from './json-field.tsx'
import { reachableFrom } from './reachable.ts'

type States = wire.BlueprintView['states']

/** A new job with the same data or other, from its beginning or from one of its states on. */
export function AgainDialog({ job, close }: { readonly job: JobBody; readonly close: () => void }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const rerun = useRerun()
  const navigate = useNavigate()
  const { data: blueprint } = useBlueprint(job.blueprint_name)
  const jobName = useJobName(job.blueprint_name)
  const [from, setFrom] = useState('')
  const [input, setInput] = useState(() => written(job.initial_data))
  const [history, setHistory] = useState(() => written(job.state_history))
  const readInput = readText(input)
  const readHistory = from === '' ? {} : readText(history)
  const states = blueprint?.states ?? []
  const start = (): void =>
    rerun.mutate(
      {
        id: job.job_id,
        body: {
          initial_data: readInput.value,
          ...(from === '' ? {} : { from_state: from, state_history: readHistory.value }),
        },
      },
      {
        onSuccess: ({ job_id: id }) => {
          close()
          void navigate({ to: '/jobs/$id', params: { id } })
        },
        onError: (error) => say(error, true),
      },
    )
  return (
    <Dialog title={t('job.againTitle', { name: jobName })} close={close} isWide>
      <div className="flex flex-col gap-4">
        <p className="text-soft">{t('job.againNote')}</p>
        <label className="flex flex-col gap-1">
          <span className="font-medium">{t('again.from')}</span>
          <select
            value={from}
            onChange={({ target }) => setFrom(target.value)}
            className="h-9 rounded-md border border-edge bg-panel px-2"
          >
            <option value="">{t('again.start', { state: blueprint?.start ?? '' })}</option>
            {states
              .filter(({ kind, name }) => kind === 'handler' && name !== blueprint?.start)
              .map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
          </select>
        </label>
        <Preview states={states} from={from === '' ? (blueprint?.start ?? '') : from} />
        {from !== '' && job.ended_at !== undefined ? <p className="text-warn">{t('again.resultsGone')}</p> : null}
        <JsonField label={t('job.input')} text={input} change={setInput} problem={readInput.problem} />
        {from === '' ? null : (
          <JsonField label={t('job.stateHistory')} text={history} change={setHistory} problem={readHistory.problem} />
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{t('common.back')}</Button>
          <Button
            tone="primary"
            icon="run"
            disabled={rerun.isPending || readInput.problem !== undefined || readHistory.problem !== undefined}
            onClick={start}
          >
            {t('job.startNew')}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

/** What will or may run, and what is taken over. */
function Preview({ states, from }: { readonly states: States; readonly from: string }): ReactNode {
  const { t } = useText()
  const { runs, skipped } = useMemo(() => reachableFrom(states, from), [states, from])
  return (
    <div className="rounded-lg bg-raise px-3 py-2 text-soft" aria-label={t('again.preview')} role="note">
      <p>
        {t('again.runs')} <bdi className="text-ink">{runs.join(' → ')}</bdi>
      </p>
      {skipped.length === 0 ? null : (
        <p>
          {t('again.skipped')} <bdi>{skipped.join(', ')}</bdi>
        </p>
      )}
    </div>
  )
}
