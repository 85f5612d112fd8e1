import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { useAutomation, usePreviewOf, useSaveAutomation } from '../data/automation-queries.ts'
import { useParam } from '../data/search.ts'
import { JsonField } from '../job/json-field.tsx'
import { useText } from '../text/text.tsx'
import { Button, LinkButton } from '../ui/button.tsx'
import { Input, Select, TextArea } from '../ui/field.tsx'
import { Failure, Loading, PageHead, Panel, Tabs } from '../ui/parts.tsx'
import { useSay } from '../ui/toast.tsx'
import { changed, NEW_DRAFT, numberOrText, partsOf, replacedAt, textOf } from './draft.ts'
import { DraftInput } from './draft-input.tsx'
import type { Draft } from './draft.ts'
import { MISFIRES, misfireOf, withMisfire } from './misfire.ts'
import type { Misfire } from './misfire.ts'
import { useJsonText } from './json-text.ts'
import { Previews } from './previews.tsx'
import { otherProblems, problemsAt, problemsIn } from './problems.ts'
import { StepList } from './step-editor.tsx'
import { Said, TriggerEditor } from './trigger-editor.tsx'

/** A new automation. */
export function NewAutomationPage(): ReactNode {
  return <Editor given={NEW_DRAFT} />
}

/** Another definition for one that there is. */
export function EditAutomationPage(): ReactNode {
  const id = useParam('id')
  const { data, error } = useAutomation(id)
  if (error !== null) return <Failure error={error} />
  if (data === undefined) return <Loading />
  return <Editor key={id} id={id} given={data.definition} />
}

type Way = 'form' | 'json'

function Editor({ id, given }: { readonly id?: string; readonly given: Draft }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const navigate = useNavigate()
  const save = useSaveAutomation()
  const [draft, setDraft] = useState<Draft>(given)
  const [way, setWay] = useState<Way>('form')
  const preview = usePreviewOf(draft)
  const problems = problemsIn(preview.error ?? save.error)
  const other = otherProblems(problems)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate(
          { id, definition: draft },
          {
            onSuccess: ({ id: made }) => {
              say(t('common.done'))
              void navigate({ to: '/automations/$id', params: { id: made } })
            },
          },
        )
      }}
    >
      <PageHead title={t(id === undefined ? 'editor.new' : 'editor.edit')} note={t('editor.note')}>
        {id === undefined ? (
          <LinkButton to="/automations">{t('common.back')}</LinkButton>
        ) : (
          <LinkButton to="/automations/$id" params={{ id }}>
            {t('common.back')}
          </LinkButton>
        )}
        <Button type="submit" tone="primary" icon="check" disabled={save.isPending}>
          {t('editor.save')}
        </Button>
      </PageHead>
      <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,1fr)_24rem]">
        <div className="flex min-w-0 flex-col gap-4">
          <Tabs<Way>
            label={t('start.way')}
            chosen={way}
            choose={setWay}
            tabs={[
              ['form', t('start.form')],
              ['json', 'JSON'],
            ]}
          />
          {other.length === 0 ? null : (
            <div role="alert" className="rounded-lg bg-bad-tint px-4 py-3 text-bad">
              {other.map(({ field, message }) => (
                <p key={`${field} ${message}`} className="[overflow-wrap:anywhere]">
                  {field === '' ? message : `${field}: ${message}`}
                </p>
              ))}
            </div>
          )}
          {way === 'json' ? (
            <Whole draft={draft} change={setDraft} />
          ) : (
            <EditorForm draft={draft} change={setDraft} problems={problems} />
          )}
        </div>
        <Previews draft={draft} preview={preview} />
      </div>
    </form>
  )
}

function Whole({ draft, change }: { readonly draft: Draft; readonly change: (draft: Draft) => void }): ReactNode {
  const { t } = useText()
  const field = useJsonText(draft, change)
  return (
    <Panel>
      <JsonField label={t('automations.definition')} rows={28} {...field} />
    </Panel>
  )
}

interface FormProps {
  readonly draft: Draft
  readonly change: (draft: Draft) => void
  readonly problems: ReturnType<typeof problemsIn>
}

function EditorForm({ draft, change, problems }: FormProps): ReactNode {
  const { t } = useText()
  const triggers = partsOf(draft, 'triggers')
  const steps = partsOf(draft, 'pipeline')
  const put = (name: string, list: readonly Draft[]): void => change({ ...draft, [name]: list })
  return (
    <>
      <General draft={draft} change={change} problem={problems.find(({ field }) => field === 'title')?.message} />
      <Panel
        title={t('editor.triggers')}
        actions={
          <Button size="small" icon="plus" onClick={() => put('triggers', [...triggers, { cron: '0 9 * * *' }])}>
            {t('editor.addTrigger')}
          </Button>
        }
      >
        <div className="flex flex-col gap-3">
          {triggers.length === 0 ? <p className="text-soft">{t('editor.byHand')}</p> : null}
          {triggers.map((trigger, at) => (
            <TriggerEditor
              key={at}
              number={at + 1}
              trigger={trigger}
              change={(next) => put('triggers', replacedAt(triggers, at, next))}
              remove={() => put('triggers', triggers.toSpliced(at, 1))}
              problemAt={problemsAt(problems, `triggers[${at}]`, [])}
            />
          ))}
        </div>
      </Panel>
      <Panel title={t('editor.steps')}>
        <StepList steps={steps} change={(next) => put('pipeline', next)} problems={problems} path="pipeline" />
        <Said messages={steps.length === 0 ? [t('editor.noSteps')] : []} />
      </Panel>
    </>
  )
}

const ZONES: readonly string[] = Intl.supportedValuesOf('timeZone')
const OVERLAPS = ['queue', 'skip', 'restart', 'parallel'] as const

function General({
  draft,
  change,
  problem,
}: Omit<FormProps, 'problems'> & { readonly problem: string | undefined }): ReactNode {
  const { t } = useText()
  const put = (part: Draft): void => change(changed(draft, part))
  return (
    <Panel>
      <div className="grid gap-4 sm:grid-cols-2">
        <Input
          label={t('editor.title')}
          required
          maxLength={200}
          value={textOf(draft['title'])}
          problem={problem}
          onChange={({ target }) => change({ ...draft, title: target.value })}
        />
        <Input
          label={t('editor.timezone')}
          list="editor-zones"
          value={textOf(draft['timezone'])}
          onChange={({ target }) => put({ timezone: target.value })}
        />
        <datalist id="editor-zones">
          {ZONES.map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
        <div className="sm:col-span-2">
          <TextArea
            label={t('editor.description')}
            rows={2}
            maxLength={2_000}
            className="min-h-14"
            value={textOf(draft['description'])}
            onChange={({ target }) => put({ description: target.value })}
          />
        </div>
        <Select
          label={t('editor.overlap')}
          value={textOf(draft['overlap']) || 'queue'}
          onChange={({ target }) => put({ overlap: target.value })}
        >
          {OVERLAPS.map((one) => (
            <option key={one} value={one}>
              {t(`overlap.${one}`)}
            </option>
          ))}
        </Select>
        <DraftInput
          draft={draft}
          name="priority"
          label={t('editor.priority')}
          type="number"
          min={1}
          max={9}
          placeholder="5"
          put={put}
        />
        <MisfireFields draft={draft} change={change} />
      </div>
    </Panel>
  )
}

function MisfireFields({ draft, change }: Omit<FormProps, 'problems'>): ReactNode {
  const { t } = useText()
  const { kind, most } = misfireOf(draft)
  return (
    <>
      <Select
        label={t('editor.misfire')}
        value={kind}
        onChange={({ target }) => change(withMisfire(draft, target.value as Misfire))}
      >
        {MISFIRES.map((one) => (
          <option key={one} value={one}>
            {t(`misfire.${one}`)}
          </option>
        ))}
      </Select>
      {kind === 'catch_up' ? (
        <Input
          label={t('misfire.most')}
          type="number"
          min={1}
          max={1_000}
          value={textOf(most)}
          onChange={({ target }) => change(withMisfire(draft, kind, numberOrText(target.value) ?? ''))}
        />
      ) : null}
    </>
  )
}
