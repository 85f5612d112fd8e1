import type { HistoryBody } from '@impresario/protocol'
import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { clockTime } from '../data/format.ts'
import { eventWords } from '../text/event-words.ts'
import { useText } from '../text/text.tsx'
import { written } from '../ui/json.tsx'
import { dataSteps } from './data-diff.ts'
import type { DataChange, DataStep } from './data-diff.ts'

const STEPS_MAX = 100
const VALUE_CHARS_MAX = 400

/** What each step of the job wrote into its data: from one state to the next. */
export function DataSteps({
  events,
  state,
}: {
  readonly events: readonly HistoryBody[]
  readonly state: string | undefined
}): ReactNode {
  const { t } = useText()
  const steps = useMemo(
    () => dataSteps(events).filter((step) => state === undefined || step.state === state),
    [events, state],
  )
  return (
    <section className="px-4 py-3" aria-label={t('data.steps')}>
      <h3 className="mb-1.5 text-xs font-medium text-faint">{t('data.steps')}</h3>
      {steps.length === 0 ? <p className="text-soft">{t('data.noSteps')}</p> : null}
      <ol className="flex flex-col gap-3">
        {steps.slice(-STEPS_MAX).map((step) => (
          <Step key={step.id} step={step} />
        ))}
      </ol>
    </section>
  )
}

function Step({ step: { at, state, event, changes, isCut } }: { readonly step: DataStep }): ReactNode {
  const { t, language } = useText()
  return (
    <li className="rounded-lg border border-line">
      <p className="flex flex-wrap items-center gap-x-2 border-b border-line bg-raise/50 px-3 py-1.5">
        <bdi className="font-medium">{state}</bdi>
        <span className="text-xs text-soft">{eventWords(t, event)}</span>
        <time className="num ml-auto font-mono text-xs text-faint">{clockTime(at, language)}</time>
      </p>
      <ChangeList changes={changes} />
      {isCut ? <p className="px-3 pb-2 text-xs text-faint">{t('data.cut')}</p> : null}
    </li>
  )
}

/** What is there instead of what. */
export function ChangeList({ changes }: { readonly changes: readonly DataChange[] }): ReactNode {
  return (
    <ul className="overflow-x-auto py-1 font-mono text-xs leading-5">
      {changes.map((change) => (
        <Change key={change.path.join('\n')} change={change} />
      ))}
    </ul>
  )
}

function Change({ change }: { readonly change: DataChange }): ReactNode {
  const name = change.path.join('.').slice(0, 200)
  return (
    <li className="px-3">
      {'before' in change ? <Side mark="−" name={name} value={change.before} tone="bg-bad-tint text-bad" /> : null}
      {'after' in change ? <Side mark="+" name={name} value={change.after} tone="bg-ok-tint text-ok" /> : null}
    </li>
  )
}

function Side({
  mark,
  name,
  value,
  tone,
}: {
  readonly mark: string
  readonly name: string
  readonly value: unknown
  readonly tone: string
}): ReactNode {
  const text = written(value, 0)
  return (
    <p className={`my-0.5 rounded px-2 [overflow-wrap:anywhere] whitespace-pre-wrap ${tone}`}>
      {mark} <bdi>{name}</bdi>: <bdi>{text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text}</bdi>
    </p>
  )
}
