import type { FieldProblem } from '@impresario/protocol'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { useTools } from '../data/automation-queries.ts'
import type { ToolBody } from '../data/automation-queries.ts'
import { JsonField } from '../job/json-field.tsx'
import { useText } from '../text/text.tsx'
import { Input, Select, TextArea } from '../ui/field.tsx'
import { SchemaForm } from '../ui/schema-form.tsx'
import type { FormSchema } from '../ui/schema-form.tsx'
import { useJsonText } from './json-text.ts'
import { changed, isDraft, numberOrText, textOf } from './draft.ts'
import { DraftInput } from './draft-input.tsx'
import type { Draft } from './draft.ts'
import { problemsAt } from './problems.ts'
import type { ProblemAt } from './problems.ts'
import { decisionsIn } from './step-kind.ts'
import { Said } from './trigger-editor.tsx'

interface PartProps {
  readonly step: Draft
  readonly change: (step: Draft) => void
}

export function ToolStep({ step, change, problemAt }: PartProps & { readonly problemAt: ProblemAt }): ReactNode {
  const { data: tools = [] } = useTools()
  const uses = textOf(step['uses'])
  return (
    <div className="flex flex-col gap-3">
      <ToolChoice
        tools={tools}
        uses={uses}
        problem={problemAt('uses')[0]}
        choose={(name) => change(changed(step, { uses: name }))}
      />
      <ToolInput key={uses} tool={tools.find(({ name }) => name === uses)} step={step} change={change} />
      <Said messages={problemAt('with')} />
    </div>
  )
}

/** What a person is asked, what can be answered, and until when. */
export function Question({
  step,
  change,
  problems,
  path,
}: PartProps & { readonly problems: readonly FieldProblem[]; readonly path: string }): ReactNode {
  const { t } = useText()
  const asked = isDraft(step['approval']) ? step['approval'] : {}
  const given = asked['decisions']
  const [decisions, setDecisions] = useState(() => (Array.isArray(given) ? given.map(String).join(', ') : ''))
  const problemAt = problemsAt(problems, `${path}.approval`, ['message', 'decisions', 'expires_seconds'])
  const put = (part: Draft): void =>
    change({ ...step, approval: { ...changed(asked, part), message: part['message'] ?? asked['message'] ?? '' } })
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <div className="sm:col-span-2">
        <TextArea
          label={t('editor.question')}
          rows={2}
          maxLength={4_000}
          className="min-h-14"
          required
          value={textOf(asked['message'])}
          problem={problemAt('message')[0]}
          onChange={({ target }) => put({ message: target.value })}
        />
      </div>
      <Input
        label={t('editor.decisions')}
        note={t('editor.decisionsNote')}
        placeholder="approved, rejected"
        value={decisions}
        problem={problemAt('decisions')[0]}
        onChange={({ target }) => {
          setDecisions(target.value)
          put({ decisions: decisionsIn(target.value) })
        }}
      />
      <DraftInput
        draft={asked}
        name="expires_seconds"
        label={t('editor.expires')}
        type="number"
        min={1}
        put={put}
        problemAt={problemAt}
      />
      <Said messages={problemAt('')} />
    </div>
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
