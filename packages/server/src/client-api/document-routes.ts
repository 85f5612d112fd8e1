import type { FastifyInstance } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import { z } from 'zod'
import { callerOf } from '../http/access.ts'
import { route } from '../http/route.ts'

export interface DocumentHit {
  readonly id: number
  readonly path: string
  readonly name: string
  readonly kind: string
  readonly title: string
  readonly snippet: string
  readonly highlights: readonly (readonly [start: number, end: number])[]
  readonly score: number
  readonly size: number
  readonly modifiedAt: string
}

export interface DocumentFile {
  readonly id: number
  readonly path: string
  readonly status: string
  readonly attempts: number
  readonly code: string | undefined
  readonly error: string | undefined
  readonly kind: string | undefined
  readonly title: string
  readonly size: number
  readonly updatedAt: number
}

/** The documents app as the API sees it. An index belongs to a client: nothing here reaches another client's. */
export interface DocumentsPort {
  search(
    clientId: string,
    query: string,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<{ readonly hits: readonly DocumentHit[]; readonly hasMore: boolean }>
  /** The whole text of a document. */
  text(clientId: string, id: number): Promise<{ readonly path: string; readonly text: string } | undefined>
  files(
    clientId: string,
    query: { readonly status?: string; readonly after?: string; readonly limit: number },
  ): Promise<readonly DocumentFile[]>
  stats(clientId: string): Promise<Readonly<Record<string, unknown>>>
  /** Refuses what is outside of the client's folders. */
  submit(clientId: string, path: string): Promise<void>
  retry(clientId: string): Promise<number>
  /** Its figures in the text format of Prometheus, over all clients. */
  metricsText?(): string
}

const LIMIT_DEFAULT = 10
const LIMIT_MAX = 100
const OFFSET_MAX = 10_000
const STATUSES = ['pending', 'running', 'completed', 'failed', 'retry']

const hit = z.looseObject({
  id: z.int(),
  path: z.string(),
  name: z.string(),
  kind: z.string().describe('The format, such as pdf.'),
  title: z.string(),
  snippet: z.string().describe('Cut from the document around the words.'),
  highlights: z.array(z.array(z.int())).describe('Where the words stand in the snippet: start and end.'),
  score: z.number().describe('Higher is better; only comparable within one answer.'),
  size: z.int(),
  modified_at: z.string(),
})
const searchReply = z.object({ hits: z.array(hit), has_more: z.boolean() })
const file = z.looseObject({
  id: z.int(),
  path: z.string(),
  status: z.enum(['pending', 'running', 'completed', 'failed', 'retry']),
  attempts: z.int(),
  code: z.string().nullable(),
  error: z.string().nullable(),
  kind: z.string().nullable(),
  title: z.string(),
  size: z.int(),
  updated_at: z.string(),
})

const SEARCH = route({
  access: 'viewer',
  scope: 'documents:search',
  tag: 'documents',
  id: 'searchDocuments',
  summary: 'Find documents',
  description:
    'Words, "a phrase", -excluded, begin*, OR, name:, title:, type:, path:, date:. In the caller’s own index.',
  query: z.object({
    q: z.string().describe('The query.'),
    limit: z.int().optional().describe(`Hits at most: ${LIMIT_DEFAULT}, up to ${LIMIT_MAX}.`),
    offset: z.int().optional(),
  }),
  replies: { 200: { description: 'The best first.', body: searchReply } },
  refusals: ['INPUT_REFUSED', 'LIMIT_EXCEEDED', 'OVERLOADED'],
})
const TEXT = route({
  access: 'viewer',
  scope: 'documents:search',
  tag: 'documents',
  id: 'getDocumentText',
  summary: 'Read the whole text of a document',
  params: z.object({ document: z.string().describe('The id of a hit.') }),
  replies: { 200: { description: 'Its text.', body: z.object({ id: z.int(), path: z.string(), text: z.string() }) } },
  refusals: ['NOT_FOUND'],
})
const FILES = route({
  access: 'viewer',
  scope: 'documents:search',
  tag: 'documents',
  id: 'listDocumentFiles',
  summary: 'List files with their status',
  query: z.object({ status: z.string().optional(), after: z.string().optional(), limit: z.int().optional() }),
  replies: { 200: { description: 'By path.', body: z.array(file) } },
})
const STATUS = route({
  access: 'viewer',
  scope: 'documents:search',
  tag: 'documents',
  id: 'getDocumentsStatus',
  summary: 'The state of the documents app: progress, queue, statistics, health',
  replies: { 200: { description: 'Of the caller’s own index.', body: z.looseObject({}) } },
})
const SUBMIT = route({
  access: 'client',
  scope: 'admin',
  isNewWork: true,
  tag: 'documents',
  id: 'submitDocument',
  summary: 'Have a file read now',
  description: 'A path on the server, in one of the folders that the configuration gives to the caller.',
  body: z.object({ path: z.string().min(1).max(4_096) }),
  replies: { 202: { description: 'It is in the queue.', body: z.object({ status: z.literal('accepted') }) } },
  refusals: ['INPUT_REFUSED', 'QUEUE_FULL', 'FORBIDDEN'],
})
const RETRY = route({
  access: 'client',
  scope: 'admin',
  isNewWork: true,
  tag: 'documents',
  id: 'retryDocuments',
  summary: 'Read all failed files once more',
  isBodyOptional: true,
  replies: { 202: { description: 'They are in the queue.', body: z.object({ retried: z.int() }) } },
})

/** Only where the server has the documents app. */
export function registerDocumentRoutes(app: FastifyInstance, documents: DocumentsPort): void {
  app.get<{ Querystring: Readonly<Record<string, unknown>> }>('/documents', SEARCH, async (request) => {
    const { q, limit, offset } = request.query
    if (typeof q !== 'string') {
      throw new ImpresarioError('INVALID_REQUEST', '"q" in the query is missing: what to look for.')
    }
    const page = {
      limit: within('limit', limit, LIMIT_DEFAULT, LIMIT_MAX),
      offset: within('offset', offset, 0, OFFSET_MAX),
    }
    const { hits, hasMore } = await documents.search(callerOf(request).client.id, q, page)
    return { hits: hits.map(({ modifiedAt, ...rest }) => ({ ...rest, modified_at: modifiedAt })), has_more: hasMore }
  })

  app.get<{ Querystring: Readonly<Record<string, unknown>> }>('/documents/files', FILES, async (request) => {
    const { status, after, limit } = request.query
    if (status !== undefined && !STATUSES.some((known) => known === status)) {
      throw new ImpresarioError('INVALID_REQUEST', `"status" in the query must be one of ${STATUSES.join(', ')}.`)
    }
    const query = {
      limit: within('limit', limit, LIMIT_MAX, 1_000),
      ...(typeof status === 'string' ? { status } : {}),
      ...(typeof after === 'string' ? { after } : {}),
    }
    return (await documents.files(callerOf(request).client.id, query)).map(fileBody)
  })

  app.get('/documents/status', STATUS, async (request) => documents.stats(callerOf(request).client.id))

  app.get<{ Params: { readonly document: string } }>('/documents/:document/text', TEXT, async (request) => {
    const id = /^\d{1,15}$/.test(request.params.document) ? Number(request.params.document) : 0
    const found = await documents.text(callerOf(request).client.id, id)
    if (found === undefined) throw new ImpresarioError('NOT_FOUND', 'Document not found')
    return { id, ...found }
  })

  app.post<{ Body: { readonly path: string } }>('/documents', SUBMIT, async (request, reply) => {
    await documents.submit(callerOf(request).client.id, request.body.path)
    return reply.code(202).send({ status: 'accepted' })
  })

  app.post('/documents/retry', RETRY, async (request, reply) =>
    reply.code(202).send({ retried: await documents.retry(callerOf(request).client.id) }),
  )
}

function fileBody({ id, path, status, attempts, code, error, kind, title, size, updatedAt }: DocumentFile): object {
  return {
    id,
    path,
    status,
    attempts,
    code: code ?? null,
    error: error ?? null,
    kind: kind ?? null,
    title,
    size,
    updated_at: new Date(updatedAt).toISOString(),
  }
}

function within(name: string, given: unknown, fallback: number, most: number): number {
  if (given === undefined) return fallback
  const value = Number(given)
  if (Number.isInteger(value) && value >= 0 && value <= most) return value
  throw new ImpresarioError('INVALID_REQUEST', `"${name}" in the query must be a whole number from 0 to ${most}.`)
}
