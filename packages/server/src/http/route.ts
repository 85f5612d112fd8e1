import type { FastifyContextConfig, FastifySchema } from 'fastify'
import { ERROR_MEANINGS, ImpresarioError, isJsonObject } from '@impresario/protocol'
import type { ErrorCode } from '@impresario/protocol'
import type { z } from 'zod'
import type { Access, RateKind, RouteScope } from './access.ts'
import { jsonSchema } from './json-schema.ts'

export const TAGS = {
  jobs: 'Starting, reading and commanding jobs.',
  approvals: 'What jobs ask people.',
  events: 'What jobs wait for from outside.',
  quarantine: 'Jobs that wait until a person retries or discards them.',
  blueprints: 'The scripts that jobs run.',
  workers: 'The processes that run tasks.',
  files: 'Files of jobs: for their tasks, and with their results.',
  schedules: 'Jobs that start by the calendar.',
  documents: 'Documents that are read from folders, and their search.',
  automations: 'Standing orders: what runs when, its runs, and the events that start them.',
  agents: 'Programs that act on their own or for a person, with scopes and tokens.',
  webhooks: 'Messages about jobs to other systems, and their receivers.',
  server: 'The server itself: health, overview, configuration, this document.',
  'worker protocol': 'What workers call. Existing workers of every generation are understood.',
} as const
type Tag = keyof typeof TAGS

interface Reply {
  readonly description: string
  readonly body?: z.ZodType
  /** Of another type than JSON; beside a `body`, what those who ask for it get instead. */
  readonly types?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

/** Everything that is said about a route in one place: who may call it, what it takes and what it answers. */
export type RouteDescription = RouteFields & (OpenRoute | ScopedRoute)

/** One to which the caller adds the tag. */
export type UntaggedRoute = Untagged<RouteDescription>
type Untagged<Route> = Route extends unknown ? Omit<Route, 'tag'> : never

interface OpenRoute {
  readonly access: 'public' | 'worker'
  readonly scope?: undefined
}

/** A route that clients may call says which scope an agent needs. */
interface ScopedRoute {
  readonly access: Exclude<Access, 'public' | 'worker'>
  readonly scope: RouteScope
}

interface RouteFields {
  readonly rate?: RateKind
  /** It asks for more work to be done: refused first when there is too much. */
  readonly isNewWork?: boolean
  /** Bytes of one text in its body, where that is more than usual. */
  readonly textBytesMax?: number
  /** It answers with a page of a list. */
  readonly isList?: boolean
  readonly tag: Tag
  /** Unique, in camelCase: programs that are made from the document call it so. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly params?: z.ZodType
  readonly query?: z.ZodType
  readonly body?: z.ZodType
  /** The request may come without a body. */
  readonly isBodyOptional?: boolean
  /** The body is only described here; the handler looks at it itself. */
  readonly isBodyReadByHandler?: boolean
  /** By status. */
  readonly replies: Readonly<Record<number, Reply>>
  /** What it refuses beside what every route does. */
  readonly refusals?: readonly ErrorCode[]
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For the document only: paths and queries are texts, and are read by the handlers. */
    readonly documented?: { readonly params?: object; readonly querystring?: object; readonly body?: object }
    /** The same route is described under another path already. */
    readonly isAlias?: boolean
  }
}

export interface RouteDeclaration {
  readonly config: FastifyContextConfig
  readonly schema: FastifySchema
}

/** What Fastify needs for a route. The body is checked by it; answers are described and never changed. */
export function route(given: RouteDescription): RouteDeclaration {
  const { access, scope, rate, isNewWork, isList, textBytesMax, tag, id, summary, description, params, query } = given
  const body = bodyOf(given)
  return {
    config: {
      access,
      ...(scope === undefined ? {} : { scope }),
      ...(rate === undefined ? {} : { rate }),
      ...(isNewWork === true ? { isNewWork } : {}),
      ...(isList === true ? { isList } : {}),
      ...(textBytesMax === undefined ? {} : { textBytesMax }),
      documented: {
        ...(params === undefined ? {} : { params: jsonSchema(params) }),
        ...(query === undefined ? {} : { querystring: jsonSchema(query) }),
        ...(body !== undefined && given.isBodyReadByHandler === true ? { body } : {}),
      },
    },
    schema: {
      tags: [tag],
      operationId: id,
      summary,
      ...(description === undefined ? {} : { description }),
      security: securityOf(access),
      ...(body === undefined || given.isBodyReadByHandler === true ? {} : { body }),
      response: { ...repliesOf(given.replies), ...refusalsOf(given) },
    },
  }
}

function bodyOf({ body, isBodyOptional }: RouteDescription): object | undefined {
  if (body === undefined) return undefined
  const schema = jsonSchema(body)
  return isBodyOptional === true ? { anyOf: [schema, { type: 'null' }] } : schema
}

/** Names of the security schemes in the document. */
export const CLIENT_SCHEME = 'clientToken'
export const WORKER_SCHEME = 'workerToken'

function securityOf(access: Access): Readonly<Record<string, string[]>>[] {
  if (access === 'public') return []
  if (access === 'worker') return [{ [WORKER_SCHEME]: [] }]
  return access === 'capability' ? [{}, { [CLIENT_SCHEME]: [] }] : [{ [CLIENT_SCHEME]: [] }]
}

function repliesOf(replies: RouteDescription['replies']): Record<string, object> {
  const described: Record<string, object> = {}
  for (const [status, { description, body, types, headers }] of Object.entries(replies)) {
    const schema = body === undefined ? { type: types === undefined ? 'null' : 'string' } : jsonSchema(body, 'output')
    described[status] = {
      ...(types === undefined ? schema : { content: contentOf(types, body === undefined ? undefined : schema) }),
      description,
      ...(headers === undefined ? {} : { headers: headersOf(headers) }),
    }
  }
  return described
}

function contentOf(types: readonly string[], json: object | undefined): Record<string, object> {
  const texts = types.map((type) => [type, { schema: { type: 'string' } }] as const)
  return { ...(json === undefined ? {} : { 'application/json': { schema: json } }), ...Object.fromEntries(texts) }
}

function headersOf(headers: Readonly<Record<string, string>>): object {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { type: 'string', description }]),
  )
}

const PROBLEM = { $ref: 'Problem#' }
/** People get a page, whatever it says. */
const PROBLEM_PAGE = {
  content: { 'text/html': { schema: { type: 'string' } }, 'application/json': { schema: PROBLEM } },
}

function refusalsOf({
  access,
  refusals = [],
  body,
  isNewWork,
  isList,
  replies,
}: RouteDescription): Record<string, object> {
  const codes = new Set<ErrorCode>(refusals)
  if (isNewWork === true || isList === true || body !== undefined) codes.add('OVERLOADED')
  if (body !== undefined) for (const code of BODY_REFUSALS) codes.add(code)
  if (access !== 'public') codes.add('UNAUTHENTICATED').add('TOO_MANY_REQUESTS')
  if (access === 'client' || access === 'admin' || access === 'capability') codes.add('FORBIDDEN')
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of codes) {
    const { status } = new ImpresarioError(code, '')
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const described: Record<string, object> = {}
  const isPage = Object.values(replies).some(({ types }) => types?.includes('text/html') === true)
  const shape = isPage ? PROBLEM_PAGE : PROBLEM
  for (const [status, of] of byStatus) {
    described[status] = {
      ...shape,
      description: of.map((code) => `\`${code}\`: ${ERROR_MEANINGS[code].meaning}`).join('\n\n'),
    }
  }
  return { ...described, default: { ...shape, description: 'Every other refusal has the same shape.' } }
}

const BODY_REFUSALS: readonly ErrorCode[] = [
  'INVALID_REQUEST',
  'INVALID_JSON',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_MEDIA',
  'LIMIT_EXCEEDED',
]

/** Reads the query by its schema; what is wrong is named. */
export function readQuery<T extends z.ZodType>(schema: T, query: unknown): z.output<T> {
  const given = isJsonObject(query) ? Object.fromEntries(Object.entries(query).filter(([, value]) => value !== '')) : {}
  const read = schema.safeParse(given)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const name = issue?.path.join('.') ?? ''
  throw new ImpresarioError('INVALID_REQUEST', `"${name}" in the query: ${issue?.message ?? 'is not valid'}.`)
}
