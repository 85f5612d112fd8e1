import type { Json, JsonObject } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'
import { BOUNDS } from './bounds.ts'
import { objectOf, ToolRefusal } from './tool.ts'

/** What a person fills in before a job starts. */
export interface Form {
  readonly key: string
  readonly message: string
  /** The schemas of its fields, from the schema of the input. */
  readonly properties: JsonObject
  readonly required: readonly string[]
}

/** What is known of the arguments after some forms. Goes through the client, sealed. */
export interface Filled {
  readonly given: JsonObject
  /** The forms that were answered, by key. */
  readonly done: readonly string[]
}

/** The first form that has to be asked: it was not answered, and the call did not bring its fields. */
export function nextForm(forms: readonly Form[], args: JsonObject, { done }: Filled): Form | undefined {
  return forms.find(
    ({ key, properties }) =>
      !done.includes(key) && Object.keys(properties).some((field) => !Object.hasOwn(args, field)),
  )
}

/** As the protocol asks it. */
export function formRequest({ message, properties, required }: Form): JsonObject {
  return { mode: 'form', message, requestedSchema: { type: 'object', properties, required } }
}

/**
 * What the answer to a form adds. `undefined`: it is no answer, and the form is asked again. Whether the values are valid is
 * decided where the job is created, as for arguments.
 */
export function filledBy(form: Form, filled: Filled, response: Json | undefined): Filled | undefined {
  if (!isJsonObject(response)) return undefined
  const { action, content } = response
  if (action === 'decline' || action === 'cancel') {
    throw new ToolRefusal(`The person did not answer: ${form.message} Nothing was started.`)
  }
  if (action !== 'accept') return undefined
  const told = objectOf(content ?? {})
  const fields = Object.keys(form.properties).filter((field) => isPlain(told[field]))
  if (form.required.some((field) => !fields.includes(field))) return undefined
  const given = { ...filled.given, ...Object.fromEntries(fields.map((field) => [field, told[field] ?? null])) }
  if (Buffer.byteLength(JSON.stringify(given)) > BOUNDS.formBytesMax) {
    throw new ToolRefusal(`The answers have more than ${BOUNDS.formBytesMax} bytes together. Nothing was started.`)
  }
  return { given, done: [...filled.done, form.key] }
}

/** Forms are flat: texts, numbers, yes or no, and lists of texts. */
function isPlain(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.every((one) => typeof one === 'string')
  return ['string', 'number', 'boolean'].includes(typeof value)
}
