import { useState } from 'react'
import type { ReactNode } from 'react'
import { usePreviewRun } from '../data/automation-queries.ts'
import type { PreviewBody, RehearsedStep } from '../data/automation-queries.ts'
import { JsonField, readText } from '../job/json-field.tsx'
import { useText } from '../text/text.tsx'
import { whenWords } from '../text/when-words.ts'
import { Button } from '../ui/button.tsx'
import { JsonView } from '../ui/json.tsx'
import { Code, Failure, Panel } from '../ui/parts.tsx'
import type { Draft } from './draft.ts'
import { FiringList } from './firing-list.tsx'

/** What the draft would do: when it runs next, in words and times, and what a run of it would send to its tools. */
export function Previews({
  draft,
  preview,
}: {
  readonly draft: Draft
  readonly preview: { readonly data: PreviewBody | undefined; readonly error: Error | null }
}): ReactNode {
  return (
    <div className="flex min-w-0 flex-col gap-4 xl:sticky xl:top-0">
      <Times draft={draft} preview={preview.error === null ? preview.data : undefined} />
      <RunPreview draft={draft} />
    </div>
  )
}

function Times({ draft, preview }: { readonly draft: Draft; readonly preview: PreviewBody | undefined }): ReactNode {
  const { t, language } = useText()
  return (
    <Panel flush title={t('editor.next')} className="overflow-hidden">
      <div aria-live="polite">
        {preview === undefined ? (
          <p className="px-4 py-4 text-soft">{t('editor.notYet')}</p>
        ) : (
          <p className="border-b border-line px-4 py-3 font-medium">
            {whenWords(draft, preview.words, { t, language }).join('; ') || t('automations.byEvent')}
          </p>
        )}
        <FiringList preview={preview} />
      </div>
    </Panel>
  )
}

function RunPreview({ draft }: { readonly draft: Draft }): ReactNode {
  const { t } = useText()
  const [text, setText] = useState('{}')
  const run = usePreviewRun()
  const { value, problem } = readText(text)
  return (
    <Panel title={t('editor.rehearsal')}>
      <div className="flex flex-col gap-3">
        <p className="text-soft">{t('editor.rehearsalNote')}</p>
        <JsonField label={t('editor.supposed')} rows={3} text={text} change={setText} problem={problem} />
        <div>
          <Button
            icon="run"
            disabled={run.isPending || problem !== undefined}
            onClick={() => run.mutate({ definition: draft, event: value as Draft })}
          >
            {t('editor.rehearse')}
          </Button>
        </div>
        {run.error === null ? null : <Failure error={run.error} />}
        {run.data === undefined ? null : (
          <ol aria-label={t('editor.rehearsal')} className="flex flex-col gap-3">
            {run.data.steps.map((step) => (
              <Rehearsed key={step.id} step={step} />
            ))}
          </ol>
        )}
      </div>
    </Panel>
  )
}

function Rehearsed({ step }: { readonly step: RehearsedStep }): ReactNode {
  const { t } = useText()
  const { id, uses, kind, condition, input, items, open, steps } = step
  const isSkipped = condition?.holds === false
  return (
    <li className="min-w-0 rounded-lg border border-line p-3">
      <p className="flex flex-wrap items-center gap-2">
        <span className={`font-medium ${isSkipped ? 'line-through' : ''}`}>{id}</span>
        <Code>{uses ?? kind}</Code>
        {items === null ? null : <span className="text-xs text-soft">× {items}</span>}
        {isSkipped ? <span className="text-xs text-warn">{t('editor.skipped')}</span> : null}
      </p>
      {condition === null ? null : (
        <p className="mt-1 text-xs [overflow-wrap:anywhere] text-soft">
          {condition.source} → {condition.holds === null ? '?' : String(condition.holds)}
        </p>
      )}
      {input === null ? null : (
        <div className="mt-2">
          <JsonView value={input} label={id} />
        </div>
      )}
      {open.map((message) => (
        <p key={message} className="mt-1 text-xs [overflow-wrap:anywhere] text-warn">
          {message}
        </p>
      ))}
      {steps.length === 0 ? null : (
        <ol className="mt-2 flex flex-col gap-2">
          {steps.map((inner) => (
            <Rehearsed key={inner.id} step={inner} />
          ))}
        </ol>
      )}
    </li>
  )
}
