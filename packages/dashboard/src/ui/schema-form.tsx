import { parseExact } from '@impresario/protocol'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { Input, Select, TextArea } from './field.tsx'
import { written } from './json.tsx'

/** A JSON Schema, as far as a form can be made of it. */
export interface FormSchema {
  readonly type?: string | readonly string[]
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, FormSchema>>
  readonly required?: readonly string[]
  readonly items?: FormSchema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
  readonly anyOf?: readonly FormSchema[]
}

export type FormValue = Readonly<Record<string, unknown>>

/** The value that a form begins with. */
export function initialValue(schema: FormSchema): FormValue {
  const value: Record<string, unknown> = {}
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    if (one.default !== undefined) value[name] = one.default
    else if (schema.required?.includes(name) === true) {
      if (one.type === 'boolean') value[name] = false
      else if (one.type === 'object') value[name] = initialValue(one)
      else if (one.type === 'array') value[name] = []
    }
  }
  return value
}

/** One field for each property. What has no field of its own is written as JSON. */
export function SchemaForm({
  schema,
  value,
  change,
  report,
  problems = NONE,
  within = '',
}: {
  readonly schema: FormSchema
  readonly value: FormValue
  readonly change: (value: FormValue) => void
  /** Tells what cannot be read at the moment, by the name of its field. */
  readonly report: (name: string, problem: string | undefined) => void
  /** What the server said of fields, by their names from the outside in: `address.city`. */
  readonly problems?: Problems
  /** The fields that this one is in, with a dot at the end. */
  readonly within?: string
}): ReactNode {
  return (
    <div className="flex flex-col gap-4">
      {Object.entries(schema.properties ?? {}).map(([name, one]) => (
        <Property
          key={name}
          name={name}
          schema={plain(one)}
          problems={problems}
          within={within}
          isRequired={schema.required?.includes(name) === true}
          value={value[name]}
          change={(next) => {
            const { [name]: _, ...rest } = value
            change(next === undefined ? rest : { ...rest, [name]: next })
          }}
          report={report}
        />
      ))}
    </div>
  )
}

type Problems = ReadonlyMap<string, string>
const NONE: Problems = new Map()

/** A value that may also be null is asked for like one that may be left out. */
function plain(schema: FormSchema): FormSchema {
  const [way, ...ways] = (schema.anyOf ?? []).filter(({ type }) => type !== 'null')
  if (way !== undefined && ways.length === 0) return { ...schema, ...way }
  if (typeof schema.type === 'string' || schema.type === undefined) return schema
  const [type, ...types] = schema.type.filter((one) => one !== 'null')
  return type !== undefined && types.length === 0 ? { ...schema, type } : schema
}

interface PropertyProps {
  readonly problems: Problems
  readonly within: string
  readonly name: string
  readonly schema: FormSchema
  readonly isRequired: boolean
  readonly value: unknown
  readonly change: (value: unknown) => void
  readonly report: (name: string, problem: string | undefined) => void
}

function Property(props: PropertyProps): ReactNode {
  const { name, schema, isRequired, value, change, report, problems, within } = props
  const { t } = useText()
  const label = `${schema.title ?? name}${isRequired ? ' *' : ''}`
  const problem = problems.get(`${within}${name}`)
  const note = { problem, ...(schema.description === undefined ? {} : { note: schema.description }) }
  if (schema.enum !== undefined) {
    return (
      <Select
        label={label}
        {...note}
        required={isRequired}
        value={typeof value === 'string' || typeof value === 'number' ? String(value) : ''}
        onChange={({ target }) => change(schema.enum?.find((one) => String(one) === target.value))}
      >
        <option value="">{t(isRequired ? 'form.choose' : 'form.unset')}</option>
        {schema.enum.map((one) => (
          <option key={String(one)}>{String(one)}</option>
        ))}
      </Select>
    )
  }
  if (schema.type === 'boolean') {
    return (
      <label className="flex items-center gap-2 font-medium">
        <input
          type="checkbox"
          className="size-4 accent-(--fill)"
          checked={value === true}
          onChange={({ target }) => change(target.checked)}
        />
        {label}
        {schema.description === undefined ? null : <span className="font-normal text-soft">{schema.description}</span>}
      </label>
    )
  }
  if (schema.type === 'number' || schema.type === 'integer') {
    return (
      <Input
        label={label}
        {...note}
        type="number"
        required={isRequired}
        step={schema.type === 'integer' ? 1 : 'any'}
        min={schema.minimum}
        max={schema.maximum}
        value={typeof value === 'number' ? value : ''}
        onChange={({ target }) => change(target.value === '' ? undefined : target.valueAsNumber)}
      />
    )
  }
  if (schema.type === 'string') {
    const isLong = (schema.maxLength ?? 0) > 200
    const shared = {
      label,
      ...note,
      required: isRequired,
      minLength: schema.minLength,
      maxLength: schema.maxLength,
      value: typeof value === 'string' ? value : '',
    }
    return isLong ? (
      <TextArea
        {...shared}
        onChange={({ target }) => change(target.value === '' && !isRequired ? undefined : target.value)}
      />
    ) : (
      <Input
        {...shared}
        type={schema.format === 'email' ? 'email' : schema.format === 'uri' ? 'url' : 'text'}
        onChange={({ target }) => change(target.value === '' && !isRequired ? undefined : target.value)}
      />
    )
  }
  if (schema.type === 'object' && schema.properties !== undefined) {
    return (
      <fieldset className="rounded-lg border border-line p-3">
        <legend className="px-1 font-medium">{label}</legend>
        <SchemaForm
          schema={schema}
          value={isRecord(value) ? value : {}}
          change={change}
          report={(inner, said) => report(`${name}.${inner}`, said)}
          problems={problems}
          within={`${within}${name}.`}
        />
      </fieldset>
    )
  }
  if (schema.type === 'array' && schema.items?.enum !== undefined) return <Choices {...props} label={label} />
  return <JsonProperty {...props} />
}

/** Any of a few values. */
function Choices({ schema, value, change, label }: PropertyProps & { readonly label: string }): ReactNode {
  const chosen: readonly unknown[] = Array.isArray(value) ? value : []
  const choices = schema.items?.enum ?? []
  return (
    <fieldset className="rounded-lg border border-line p-3">
      <legend className="px-1 font-medium">{label}</legend>
      {schema.description === undefined ? null : <p className="mb-1 text-xs text-soft">{schema.description}</p>}
      {choices.map((choice) => (
        <label key={String(choice)} className="flex items-center gap-2 py-0.5">
          <input
            type="checkbox"
            className="size-4 accent-(--fill)"
            checked={chosen.includes(choice)}
            onChange={({ target }) =>
              change(choices.filter((one) => (one === choice ? target.checked : chosen.includes(one))))
            }
          />
          {String(choice)}
        </label>
      ))}
    </fieldset>
  )
}

function isRecord(value: unknown): value is FormValue {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function JsonProperty({ name, schema, isRequired, value, change, report, problems, within }: PropertyProps): ReactNode {
  const { t } = useText()
  const [text, setText] = useState(() => written(value))
  const [problem, setProblem] = useState<string>()
  return (
    <TextArea
      label={`${schema.title ?? name}${isRequired ? ' *' : ''}`}
      note={schema.description ?? t('form.json')}
      problem={problem ?? problems.get(`${within}${name}`)}
      rows={3}
      spellCheck={false}
      className="font-mono text-xs"
      value={text}
      onChange={({ target }) => {
        setText(target.value)
        try {
          change(target.value.trim() === '' ? undefined : parseExact(target.value))
          setProblem(undefined)
          report(name, undefined)
        } catch (error) {
          const said = error instanceof Error ? error.message : String(error)
          setProblem(said)
          report(name, said)
        }
      }}
    />
  )
}
