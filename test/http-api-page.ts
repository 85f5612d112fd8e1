import { createServer } from '@impresario/server'
import { page, table } from './reference-pages.ts'

/*
 * The page of docs/reference about the HTTP interface, made from the OpenAPI document that the server makes of its own
 * routes.
 */

interface Schema {
  readonly $ref?: string
  readonly items?: Schema
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
}

interface Operation {
  readonly summary: string
  readonly description?: string
  readonly tags: readonly [string]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly description?: string
    readonly schema: Schema
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<
    Record<
      string,
      { readonly description: string; readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }
    >
  >
  readonly 'x-access': string
  readonly 'x-scope'?: string
}

interface Document {
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Schemas }
}

type Schemas = Readonly<Record<string, Schema>>

const WHO: Readonly<Record<string, string>> = {
  public: 'everybody',
  worker: 'workers',
  capability: 'clients, and holders of a signed link',
  viewer: 'viewers, clients and admins',
  client: 'clients and admins',
  admin: 'admins',
}

/** Responses that every route may return. */
const COMMON: ReadonlySet<string> = new Set(['401', '403', '413', '415', '429', 'default'])

interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export async function httpApiPage(): Promise<string> {
  const entries = await readEntries()
  const { tags, all, schemas } = entries
  return page('HTTP interface', [
    'Every running server has this as an OpenAPI 3.1 document at `/_public/openapi.json`, and as a page to read and try at\n' +
      '`/_public/docs`. Every path under `/api/v1` also exists under `/api` (`CLIENT_API_PREFIX`), and under the API version of\n' +
      'each blueprint that names one. Clients send their token as `X-Client-Token`, workers as `X-Worker-Token`; either may be\n' +
      'a bearer token. Times are Unix seconds, spans are seconds, and `null` means absent. What is refused is refused as in\n' +
      '[Errors](errors.md).',
    'A client sees its own jobs; those of others do not exist for it. An admin sees all. Every route may also answer 401 (who\n' +
      'are you), 403 (your role may not), 429 (too many requests), 5xx (not your fault), and those with a body 413 (too large)\n' +
      'and 415 (no JSON).',
    table(
      ['route', 'who', ''],
      all.map(({ method, path, operation }) => [
        `[\`${method} ${path}\`](#${anchorOf(method, path)})`,
        WHO[operation['x-access']] ?? operation['x-access'],
        operation.summary,
      ]),
    ),
    ...tags.flatMap(({ name, description }) => [
      `## ${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      description,
      ...all.filter(({ operation }) => operation.tags[0] === name).flatMap((entry) => sectionOf(entry, schemas)),
    ]),
    '## Types',
    'What answers are made of. Newer servers may add fields.',
    ...answerTypes(all, schemas).flatMap((name) => [
      `### ${name}`,
      table(['field', 'value', ''], fieldsOf(schemas[name], 'always')),
    ]),
  ])
}

/** What an agent needs, where the role alone does not say it. */
function scopeOf(operation: Operation): string {
  const scope = operation['x-scope']
  return scope === undefined || scope === 'any' || scope === 'admin' ? '' : `; agents with \`${scope}\``
}

/** The names of the response schemas and of the schemas that they use, in alphabetical order. */
function answerTypes(all: readonly Entry[], schemas: Schemas): readonly string[] {
  const found = new Set<string>()
  const look = (value: unknown): void => {
    const text = JSON.stringify(value) ?? ''
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (name === undefined || name === 'Problem' || found.has(name)) continue
      found.add(name)
      look(schemas[name])
    }
  }
  look(all.map(({ operation }) => operation.responses))
  return [...found].toSorted()
}

async function readEntries(): Promise<
  Pick<Document, 'tags'> & { readonly all: readonly Entry[]; readonly schemas: Schemas }
> {
  const server = createServer({
    settings: { storageUrl: 'memory:', apiHost: '127.0.0.1', apiPort: 0, logLevel: 'error' },
  })
  try {
    const { tags, paths, components } = asDocument(await server.apiDocument())
    const all = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    )
    return { tags, all, schemas: components.schemas }
  } finally {
    await server.stop()
  }
}

/** Type boundary: the server's own tests check that the document has this shape. */
function asDocument(made: object): Document {
  return made as Document
}

/** As Markdown viewers generate them: letters, digits and hyphens of the heading. */
function anchorOf(method: string, path: string): string {
  return `${method} ${path}`
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-')
}

function sectionOf({ method, path, operation }: Entry, schemas: Schemas): readonly string[] {
  const { summary, description, parameters = [], requestBody, responses } = operation
  const inQuery = parameters.filter((one) => one.in === 'query')
  const body = bodyOf(requestBody, schemas)
  return [
    `### ${method} ${path}`,
    `${summary}. For ${WHO[operation['x-access']] ?? operation['x-access']}${scopeOf(operation)}.${description === undefined ? '' : ` ${description}`}`,
    ...(inQuery.length === 0
      ? []
      : [
          table(
            ['in the query', 'value', ''],
            inQuery.map(({ name, schema, description: text }) => [`\`${name}\``, kindOf(schema), text ?? '']),
          ),
        ]),
    ...(body.length === 0 ? [] : [table(['in the body', 'value', ''], body)]),
    table(
      ['answer', ''],
      Object.entries(responses)
        .filter(([status]) => !COMMON.has(status))
        .map(([status, { description: text, content }]) => {
          const name = typeOf(content?.['application/json']?.schema)
          return [status, `${text.replaceAll(/\n+/g, ' ')}${name === undefined ? '' : ` ${name}.`}`]
        }),
    ),
  ]
}

function bodyOf(requestBody: Operation['requestBody'], schemas: Schemas): readonly (readonly string[])[] {
  const schema = requestBody?.content['application/json']?.schema
  const known = (schema?.anyOf ?? [schema]).map((one) => meantBy(one, schemas))
  return fieldsOf(known.find((one) => one?.properties !== undefined) ?? schema)
}

function nameOf({ $ref }: Schema): string | undefined {
  return $ref?.slice($ref.lastIndexOf('/') + 1)
}

function meantBy(schema: Schema | undefined, schemas: Schemas): Schema | undefined {
  const name = schema === undefined ? undefined : nameOf(schema)
  return name === undefined ? schema : schemas[name]
}

/** A link to the section of the schema that is referenced. */
function typeOf(schema: Schema | undefined): string | undefined {
  const name = schema === undefined ? undefined : (nameOf(schema) ?? nameOf(schema.items ?? {}))
  if (name === undefined || name === 'Problem') return undefined
  const link = `[${name}](#${name.toLowerCase()})`
  return schema?.items === undefined ? link : `A list of ${link}`
}

function fieldsOf(schema: Schema | undefined, mark = 'required'): readonly (readonly string[])[] {
  const { properties = {}, required = [] } = schema ?? {}
  return Object.entries(properties).map(([name, field]) => [
    `\`${name}\`${required.includes(name) ? ` (${mark})` : ''}`,
    kindOf(field),
    (field.description ?? '').replaceAll('|', String.raw`\|`),
  ])
}

function kindOf(schema: Schema): string {
  const { type, anyOf, enum: values, minimum, maximum } = schema
  const known = typeOf(schema)
  if (known !== undefined) return known.charAt(0).toLowerCase() + known.slice(1)
  if (values !== undefined) return values.map((value) => `\`${String(value)}\``).join(' or ')
  if (anyOf !== undefined) {
    const kinds = anyOf.filter((one) => one.type !== 'null').map(kindOf)
    return [...new Set(kinds)].join(' or ')
  }
  const name = [type ?? 'any'].flat().join(' or ')
  const bounds = [
    ...(minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER ? [`from ${minimum}`] : []),
    ...(maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER ? [`to ${maximum}`] : []),
  ]
  return [name, ...bounds].join(' ')
}
