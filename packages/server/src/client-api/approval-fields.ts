import type { Json, JsonObject } from '@impresario/protocol'
import { fieldsOf, inputName } from './approval-form.ts'
import type { FormField, FormProblem } from './approval-form.ts'
import type { Refused } from './approval-page.ts'
import { escaped } from './page-frame.ts'
import type { PageLanguage } from './page-language.ts'
import { PAGE_TEXTS } from './page-texts.ts'

/* The fields of a form as HTML, without a script: the browser checks what it can, and the server checks all of it. */

interface Shown {
  readonly refused: Refused | undefined
  readonly language: PageLanguage
}

export function formFields(form: JsonObject, refused: Refused | undefined, language: PageLanguage): string {
  const shown = { refused, language }
  const fields = fieldsOf(form)
    .map((field) => fieldHtml(field, shown))
    .join('\n')
  if (refused === undefined || refused.problems.length === 0) return `${fields}\n`
  const known = new Set(namesOf(fieldsOf(form)))
  const others = refused.problems.filter(({ field }) => !known.has(field))
  const list = others.map((one) => `<br>${escaped(one.field)}: ${escaped(problemText(one, language))}`).join('')
  return `<p class="wrong" role="alert">${escaped(PAGE_TEXTS[language].incomplete)}${list}</p>\n${fields}\n`
}

function namesOf(fields: readonly FormField[]): readonly string[] {
  return fields.flatMap(({ path, fields: inner }) => [path.join('.'), ...namesOf(inner)])
}

/** What somebody sent as a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function problemText({ kind, limit, message }: FormProblem, language: PageLanguage): string {
  const words = PAGE_TEXTS[language].problems[kind]
  return words === undefined ? message : words.replace('{limit}', () => limit)
}

function fieldHtml(field: FormField, shown: Shown): string {
  const { path, schema, isRequired, kind } = field
  const name = inputName(path)
  const title = `${escaped(textOf(schema['title']) || (path.at(-1) ?? ''))}${isRequired && kind !== 'boolean' ? ' *' : ''}`
  const note = textOf(schema['description'])
  const problem = shown.refused?.problems.find((one) => one.field === path.join('.'))
  const id = escaped(name)
  const said = [
    ...(note === '' ? [] : [`<p class="note" id="${id}-note">${escaped(note)}</p>`]),
    ...(problem === undefined
      ? []
      : [`<p class="wrong" id="${id}-wrong">${escaped(problemText(problem, shown.language))}</p>`]),
  ].join('\n')
  const described = [...(note === '' ? [] : [`${id}-note`]), ...(problem === undefined ? [] : [`${id}-wrong`])]
  const marks =
    (described.length === 0 ? '' : ` aria-describedby="${described.join(' ')}"`) +
    (problem === undefined ? '' : ' aria-invalid="true"')
  if (kind === 'group') {
    const inner = field.fields.map((one) => fieldHtml(one, shown)).join('\n')
    return `<fieldset${marks}><legend>${title}</legend>\n${said}${inner}</fieldset>`
  }
  if (kind === 'choices') return choicesHtml(field, shown, { title, said, marks })
  const control = controlHtml(field, shown, `id="${id}" name="${id}"${marks}`)
  if (kind === 'boolean') return `<div class="field"><label class="tick">${control} ${title}</label>\n${said}</div>`
  return `<div class="field"><label for="${id}">${title}</label>\n${said}${control}</div>`
}

interface Parts {
  readonly title: string
  readonly said: string
  readonly marks: string
}

function choicesHtml({ path, choices, schema }: FormField, { refused }: Shown, { title, said, marks }: Parts): string {
  const { default: begun } = schema
  const boxes = choices.map((choice, index) => {
    const name = inputName(path, index)
    const isChosen = refused === undefined ? Array.isArray(begun) && begun.includes(choice) : name in refused.sent
    const check = isChosen ? ' checked' : ''
    return `<label class="tick"><input type="checkbox" name="${escaped(name)}" value="on"${check}> ${escaped(shownJson(choice))}</label>`
  })
  return `<fieldset${marks}><legend>${title}</legend>\n${said}${boxes.join('\n')}</fieldset>`
}

function controlHtml({ path, schema, isRequired, kind, choices }: FormField, shown: Shown, base: string): string {
  const { refused, language } = shown
  const before = refused === undefined ? undefined : textOf(refused.sent[inputName(path)])
  const required = isRequired ? ' required' : ''
  const begun = schema['default']
  switch (kind) {
    case 'boolean': {
      const isOn = refused === undefined ? begun === true : inputName(path) in refused.sent
      return `<input type="checkbox" ${base} value="on"${isOn ? ' checked' : ''}>`
    }
    case 'choice': {
      const chosen = before ?? (begun === undefined ? '' : JSON.stringify(begun))
      const options = choices.map((choice) => {
        const value = JSON.stringify(choice)
        return `<option value="${escaped(value)}"${value === chosen ? ' selected' : ''}>${escaped(shownJson(choice))}</option>`
      })
      return `<select ${base}${required}><option value="">${escaped(PAGE_TEXTS[language].choose)}</option>${options.join('')}</select>`
    }
    case 'number': {
      const step = schema['type'] === 'integer' ? '1' : 'any'
      const bounds = `${bound('min', schema['minimum'])}${bound('max', schema['maximum'])}`
      return `<input type="number" ${base}${required} step="${step}"${bounds} value="${escaped(before ?? shownJson(begun))}">`
    }
    case 'text': {
      const lengths = `${bound('minlength', schema['minLength'])}${bound('maxlength', schema['maxLength'])}`
      const type = TYPES[textOf(schema['format'])] ?? 'text'
      return `<input type="${type}" ${base}${required}${lengths} dir="auto" value="${escaped(before ?? shownJson(begun))}">`
    }
    default: {
      const lengths = kind === 'long' ? bound('maxlength', schema['maxLength']) : ''
      const text = before ?? (kind === 'json' && begun !== undefined ? JSON.stringify(begun) : shownJson(begun))
      const hint = kind === 'json' ? ' class="json" spellcheck="false" placeholder="JSON"' : ' dir="auto"'
      return `<textarea ${base}${required}${lengths}${hint}>${escaped(text)}</textarea>`
    }
  }
}

const TYPES: Readonly<Record<string, string>> = { email: 'email', uri: 'url', date: 'date', time: 'time' }

function bound(name: string, value: Json | undefined): string {
  return typeof value === 'number' ? ` ${name}="${value}"` : ''
}

function shownJson(value: Json | undefined): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
