import { Ajv } from 'ajv'
import type { ValidateFunction } from 'ajv'

/** An answer as it came over the wire. */
export interface Reply {
  readonly status: number
  readonly type: string
  readonly body: string
}

interface Described {
  readonly content?: Readonly<Record<string, unknown>>
}

interface Paths {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses?: Readonly<Record<string, Described>> }>>>
  >
}

/** Holds answers against what the API's own document says of them. */
export class ReplyChecker {
  readonly #document: Paths
  readonly #ajv = new Ajv({ strict: false, logger: false, validateFormats: false })
  readonly #compiled = new Map<string, ValidateFunction>()

  constructor(document: Paths) {
    this.#document = document
    this.#ajv.addSchema(document, 'document')
  }

  /** What is wrong with it; `undefined` if nothing is. */
  problemOf(method: string, path: string, { status, type, body }: Reply): string | undefined {
    const responses = this.#document.paths[path]?.[method]?.responses ?? {}
    const name = String(status) in responses ? String(status) : 'default'
    const described = responses[name]
    if (described === undefined) return `the status ${status} is not in the document`
    if (name === 'default' && status < 400) return `the status ${status} is not in the document, and no refusal`
    const [media = ''] = type.split(';', 1)
    if (body === '') return undefined
    const known = Object.keys(described.content ?? {})
    if (!known.includes(media)) return `its type ${media} is none of ${known.join(', ')}`
    if (media !== 'application/json') return undefined
    const validate = this.#validator(['paths', path, method, 'responses', name, 'content', media, 'schema'])
    const value: unknown = JSON.parse(body)
    if (validate(value)) return undefined
    const [error] = validate.errors ?? []
    return `its body${error?.instancePath ?? ''} ${error?.message ?? 'does not fit'} (${JSON.stringify(error?.params)})`
  }

  #validator(place: readonly string[]): ValidateFunction {
    const pointer = place.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
    const known = this.#compiled.get(pointer) ?? this.#ajv.compile({ $ref: `document#/${pointer}` })
    this.#compiled.set(pointer, known)
    return known
  }
}
