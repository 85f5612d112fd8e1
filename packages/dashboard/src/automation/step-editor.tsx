import type { ReactNode } from 'react'
import { useTools } from '../data/automation-queries.ts'
import type { ToolBody } from '../data/automation-queries.ts'
import { JsonField } from '../job/json-field.tsx'
import { useText } from '../text/text.tsx'
import { IconButton } from '../ui/button.tsx'
import { Input, Select } from '../ui/field.tsx'
import { SchemaForm } from '../ui/schema-form.tsx'
import type { FormSchema } from '../ui/schema-form.tsx'
import { useJsonText } from './json-text.ts'
import { changed, isDraft, numberOrText, textOf } from './draft.ts'
import type { Draft } from './draft.ts'
import type { ProblemAt } from './problems.ts'
import { Said } from './trigger-editor.tsx'

/** Fields that show their own problems. */
export const STEP_FIELDS = ['id', 'uses', 'with', 'if', 'save_as', 'timeout_seconds', 'on_error']

export interface StepProps {
  readonly step: Draft
  readonly number: number
  readonly change: (step: Draft) => void
  readonly move: (by: -1 | 1) => void
  readonly remove: () => void
  readonly problemAt: ProblemAt
}

/** One step: which tool, with what, and under which condition. */
export function StepEditor({ step, number, change, move, remove, problemAt }: StepProps): ReactNode {
  const { t } = useText()
  const { data: tools = [] } = useTools()
  const isTool = !['approval', 'pipeline', 'parallel'].some((kind) => kind in step)
  const uses = textOf(step['uses'])
  const tool = tools.find(({ name }) => name === uses)
  const put = (change_: Draft): void => change(changed(step, change_))
  return (
    <fieldset className="rounded-lg border border-line p-3">
      <legend className="px-1 font-medium">{t('editor.step', { n: number })}</legend>
      <div className="flex flex-wrap items-start gap-3">
        <div className="w-36">
          <Input
            label="id"
            value={textOf(step['id'])}
            problem={problemAt('id')[0]}
            onChange={({ target }) => put({ id: target.value })}
          />
        </div>
        {isTool ? (
          <div className="min-w-44 flex-1">
            <ToolChoice
              tools={tools}
              uses={uses}
              problem={problemAt('uses')[0]}
              choose={(name) => put({ uses: name })}
            />
          </div>
        ) : null}
        <div className="ml-auto flex pt-5">
          <IconButton
            icon="left"
            className="rotate-90"
            label={t('editor.up', { n: number })}
            onClick={() => move(-1)}
          />
          <IconButton
            icon="right"
            className="rotate-90"
            label={t('editor.lower', { n: number })}
            onClick={() => move(1)}
          />
          <IconButton icon="trash" label={t('editor.removeStep', { n: number })} onClick={remove} />
        </div>
      </div>
      {isTool ? (
        <div className="mt-3">
          <ToolInput key={uses} tool={tool} step={step} change={change} />
          <Said messages={problemAt('with')} />
        </div>
      ) : (
        <WholeStep step={step} change={change} />
      )}
      <Policies step={step} put={put} problemAt={problemAt} />
      <Said messages={problemAt('')} />
    </fieldset>
  )
}

function ToolChoice({
  tools,
  uses,
  problem,
  choose,
}: {
  readonly tools: readonly ToolBody[]
  readonly uses: string
  readonly problem: string | undefined
  readonly choose: (name: string) => void
}): ReactNode {
  const { t } = useText()
  const note = tools.find(({ name }) => name === uses)?.description
  return (
    <Select
      label={t('editor.tool')}
      value={uses}
      problem={problem}
      {...(note === undefined ? {} : { note })}
      onChange={({ target }) => choose(target.value)}
    >
      {tools.some(({ name }) => name === uses) ? null : <option value={uses}>{uses}</option>}
      {tools.map(({ name }) => (
        <option key={name}>{name}</option>
      ))}
    </Select>
  )
}

/** A field for each input of the tool. Any of them may be a template, so that numbers are texts here. */
function ToolInput({
  tool,
  step,
  change,
}: {
  readonly tool: ToolBody | undefined
  readonly step: Draft
  readonly change: (step: Draft) => void
}): ReactNode {
  const schema = tool?.input_schema as FormSchema | undefined
  const given = isDraft(step['with']) ? step['with'] : {}
  const properties = Object.keys(schema?.properties ?? {})
  const isForm = properties.length > 0 && Object.keys(given).every((name) => properties.includes(name))
  if (schema === undefined || !isForm) return <JsonInput step={step} change={change} />
  return (
    <SchemaForm
      schema={templated(schema)}
      value={shownIn(schema, given)}
      change={(next) => change({ ...step, with: keptOf(schema, next) })}
      report={() => undefined}
    />
  )
}

const isNumeric = ({ type }: FormSchema): boolean => type === 'number' || type === 'integer'

function templated(schema: FormSchema): FormSchema {
  const properties = Object.entries(schema.properties ?? {}).map(([name, one]): [string, FormSchema] => {
    const { minLength: _, maxLength: __, format: ___, ...rest } = one
    return [name, isNumeric(one) ? { ...rest, type: 'string' } : rest]
  })
  return { ...schema, properties: Object.fromEntries(properties) }
}

function shownIn(schema: FormSchema, value: Draft): Draft {
  return mapped(schema, value, textOf)
}

function keptOf(schema: FormSchema, value: Draft): Draft {
  return mapped(schema, value, (one) => numberOrText(textOf(one)))
}

function mapped(schema: FormSchema, value: Draft, convert: (value: unknown) => unknown): Draft {
  const entries = Object.entries(value).map(([name, one]): [string, unknown] => {
    const property = schema.properties?.[name]
    return [name, property !== undefined && isNumeric(property) ? convert(one) : one]
  })
  return Object.fromEntries(entries.filter(([, one]) => one !== undefined))
}

function JsonInput({ step, change }: { readonly step: Draft; readonly change: (step: Draft) => void }): ReactNode {
  const { t } = useText()
  const field = useJsonText(step['with'] ?? {}, (value) => change({ ...step, with: value }))
  return <JsonField label={t('editor.with')} rows={4} {...field} />
}

/** Questions, branches and steps inside steps have no form: the step is written as a whole. */
function WholeStep({ step, change }: { readonly step: Draft; readonly change: (step: Draft) => void }): ReactNode {
  const { t } = useText()
  const field = useJsonText(step, (value) => change(value))
  return (
    <div className="mt-3">
      <JsonField label={t('editor.whole')} rows={6} {...field} />
    </div>
  )
}

function Policies({
  step,
  put,
  problemAt,
}: {
  readonly step: Draft
  readonly put: (change: Draft) => void
  readonly problemAt: ProblemAt
}): ReactNode {
  const { t } = useText()
  const onError = step['on_error']
  const isOpen = ['if', 'save_as', 'timeout_seconds', 'on_error'].some(
    (name) => name in step || problemAt(name).length > 0,
  )
  return (
    <details className="mt-3" open={isOpen}>
      <summary className="text-xs text-soft">{t('editor.policies')}</summary>
      <div className="mt-2 grid gap-3 sm:grid-cols-4">
        <Input
          label={t('editor.if')}
          placeholder="steps.step_1.status == 200"
          value={textOf(step['if'])}
          problem={problemAt('if')[0]}
          onChange={({ target }) => put({ if: target.value })}
        />
        <Input
          label={t('editor.saveAs')}
          value={textOf(step['save_as'])}
          problem={problemAt('save_as')[0]}
          onChange={({ target }) => put({ save_as: target.value })}
        />
        <Input
          label={t('editor.timeout')}
          type="number"
          min={0}
          value={textOf(step['timeout_seconds'])}
          problem={problemAt('timeout_seconds')[0]}
          onChange={({ target }) => put({ timeout_seconds: numberOrText(target.value) })}
        />
        <Select
          label={t('editor.onError')}
          value={textOf(onError) || 'fail'}
          problem={problemAt('on_error')[0]}
          disabled={isDraft(onError)}
          onChange={({ target }) => put({ on_error: target.value === 'fail' ? undefined : target.value })}
        >
          <option value="fail">{t('editor.fail')}</option>
          <option value="continue">{t('editor.continue')}</option>
          {typeof onError === 'string' && onError.startsWith('goto') ? <option>{onError}</option> : null}
        </Select>
      </div>
    </details>
  )
}
