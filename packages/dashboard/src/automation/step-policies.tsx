import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { Input, Select } from '../ui/field.tsx'
import { isDraft, numberOrText, textOf } from './draft.ts'
import { DraftInput } from './draft-input.tsx'
import type { Draft } from './draft.ts'
import type { ProblemAt } from './problems.ts'
import { longForm, shortForm } from './step-kind.ts'

const BACKOFFS = ['exponential_jitter', 'exponential', 'linear', 'fixed'] as const
const POLICY_FIELDS = ['if', 'save_as', 'timeout_seconds', 'on_error', 'retry', 'for_each'] as const

interface PoliciesProps {
  readonly step: Draft
  readonly put: (change: Draft) => void
  readonly siblings: readonly string[]
  readonly problemAt: ProblemAt
}

/** What holds for every kind of step. */
export function Policies({ step, put, siblings, problemAt }: PoliciesProps): ReactNode {
  const { t } = useText()
  const field = { draft: step, put, problemAt }
  const isOpen = POLICY_FIELDS.some((name) => name in step || problemAt(name).length > 0)
  return (
    <details className="mt-3" open={isOpen}>
      <summary className="text-xs text-soft">{t('editor.policies')}</summary>
      <div className="mt-2 grid gap-3 sm:grid-cols-4">
        <DraftInput name="if" label={t('editor.if')} placeholder="steps.step_1.status == 200" {...field} />
        <DraftInput name="save_as" label={t('editor.saveAs')} {...field} />
        <DraftInput name="timeout_seconds" label={t('editor.timeout')} type="number" min={0} {...field} />
        <OnError step={step} put={put} siblings={siblings} problemAt={problemAt} />
        <Retry step={step} put={put} problemAt={problemAt} />
        <Loop step={step} put={put} problemAt={problemAt} />
      </div>
    </details>
  )
}

function OnError({ step, put, siblings, problemAt }: PoliciesProps): ReactNode {
  const { t } = useText()
  const given = step['on_error']
  const chosen = isDraft(given) ? `goto ${textOf(given['goto'])}` : textOf(given) || 'fail'
  const places = [...new Set([...siblings.filter((id) => id !== '').map((id) => `goto ${id}`), chosen])]
  return (
    <Select
      label={t('editor.onError')}
      value={chosen}
      problem={problemAt('on_error')[0]}
      onChange={({ target }) => put({ on_error: target.value === 'fail' ? undefined : target.value })}
    >
      <option value="fail">{t('editor.fail')}</option>
      <option value="continue">{t('editor.continue')}</option>
      {places
        .filter((place) => place.startsWith('goto '))
        .map((place) => (
          <option key={place} value={place}>
            {t('editor.goto', { id: place.slice('goto '.length) })}
          </option>
        ))}
    </Select>
  )
}

function Retry({ step, put, problemAt }: Omit<PoliciesProps, 'siblings'>): ReactNode {
  const { t } = useText()
  const retry = longForm(step['retry'], 'max_attempts')
  const set = (part: Draft): void => put({ retry: shortForm({ ...retry, ...part }, 'max_attempts') })
  return (
    <>
      <Input
        label={t('editor.attempts')}
        type="number"
        min={1}
        max={20}
        placeholder="1"
        value={textOf(retry['max_attempts'])}
        problem={problemAt('retry')[0]}
        onChange={({ target }) => set({ max_attempts: numberOrText(target.value) })}
      />
      <Select
        label={t('editor.backoff')}
        disabled={retry['max_attempts'] === undefined}
        value={textOf(retry['backoff']) || 'exponential_jitter'}
        onChange={({ target }) => set({ backoff: target.value === 'exponential_jitter' ? undefined : target.value })}
      >
        {BACKOFFS.map((one) => (
          <option key={one} value={one}>
            {t(`backoff.${one}`)}
          </option>
        ))}
      </Select>
    </>
  )
}

function Loop({ step, put, problemAt }: Omit<PoliciesProps, 'siblings'>): ReactNode {
  const { t } = useText()
  const loop = longForm(step['for_each'], 'items')
  const hasItems = textOf(loop['items']) !== ''
  const set = (part: Draft): void => put({ for_each: shortForm({ ...loop, ...part }, 'items') })
  return (
    <>
      <Input
        label={t('editor.forEach')}
        placeholder="event.orders"
        value={textOf(loop['items'])}
        problem={problemAt('for_each')[0]}
        onChange={({ target }) => set({ items: target.value })}
      />
      <div className="grid grid-cols-2 gap-3">
        <Input
          label={t('editor.item')}
          placeholder="item"
          disabled={!hasItems}
          value={textOf(loop['as'])}
          onChange={({ target }) => set({ as: target.value })}
        />
        <Input
          label={t('editor.atOnce')}
          type="number"
          min={1}
          max={100}
          placeholder="10"
          disabled={!hasItems}
          value={textOf(loop['concurrency'])}
          onChange={({ target }) => set({ concurrency: numberOrText(target.value) })}
        />
      </div>
    </>
  )
}
