import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { writeJson } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import { ApiError, pathTo } from './api.ts'
import { blueprintsOf } from './blueprint.ts'
import { BOUNDS } from './bounds.ts'
import type { ContextOf } from './mcp-server.ts'
import type { LowServer } from './session.ts'
import { cutText, objectOf, rowsOf, textOf } from './tool.ts'
import type { ToolContext } from './tool.ts'

/* What an assistant can read by address: blueprints, jobs, automations, runs and documents. */

const SCHEME = 'impresario://'

const TEMPLATES = [
  {
    uriTemplate: `${SCHEME}blueprint/{name}`,
    name: 'blueprint',
    description: 'A blueprint: its states and its input.',
  },
  { uriTemplate: `${SCHEME}job/{job_id}`, name: 'job', description: 'A job with all its data.' },
  { uriTemplate: `${SCHEME}automation/{automation_id}`, name: 'automation', description: 'An automation.' },
  { uriTemplate: `${SCHEME}run/{run_id}`, name: 'run', description: 'A run with every step.' },
  { uriTemplate: `${SCHEME}document/{document_id}`, name: 'document', description: 'The text of a document.' },
].map((template) => ({ ...template, mimeType: template.name === 'document' ? 'text/plain' : 'application/json' }))

const PATHS: Readonly<Record<string, (id: string) => string>> = {
  blueprint: (id) => pathTo('blueprints', id),
  job: (id) => pathTo('jobs', id),
  automation: (id) => pathTo('automations', id),
  run: (id) => pathTo('runs', id),
  document: (id) => pathTo('documents', id, 'text'),
}

export function serveResources(server: LowServer, contextOf: ContextOf): void {
  server.setRequestHandler('resources/list', async ({ params }, ctx) => {
    const { resources, nextCursor } = await listResources(contextOf(ctx), params?.cursor)
    return { resources: [...resources], ...(nextCursor === undefined ? {} : { nextCursor }) }
  })
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: TEMPLATES }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }, ctx) => {
    const { mimeType, text } = await readResource(contextOf(ctx), uri)
    return { contents: [{ uri, mimeType, text }] }
  })
}

interface Listed {
  readonly uri: string
  readonly name: string
  readonly mimeType: string
}

/** Blueprints first, then the newest runs. Documents are found by `search`. */
async function listResources(
  context: ToolContext,
  cursor: string | undefined,
): Promise<{ readonly resources: readonly Listed[]; readonly nextCursor: string | undefined }> {
  const all = context.api.allows('jobs:read') ? await blueprintsOf(context) : []
  const rest = cursor === undefined ? all : all.filter(({ name }) => name > cursor)
  const shown = rest.slice(0, BOUNDS.rowsMax)
  const blueprints = shown.map(({ name }) => resource('blueprint', name, name))
  if (rest.length > BOUNDS.rowsMax) return { resources: blueprints, nextCursor: shown.at(-1)?.name }
  return { resources: [...blueprints, ...(await newestRuns(context))], nextCursor: undefined }
}

async function newestRuns({ api, signal }: ToolContext): Promise<readonly Listed[]> {
  try {
    const { body } = await api.call({ method: 'GET', path: '/runs', query: { limit: BOUNDS.rowsMax }, signal })
    return rowsOf(body).map(({ id, title }) => resource('run', textOf(id), `Run of ${textOf(title)}`))
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return []
    throw error
  }
}

function resource(kind: string, id: string, name: string): Listed {
  return { uri: `${SCHEME}${kind}/${encodeURIComponent(id)}`, name, mimeType: 'application/json' }
}

async function readResource(
  { api, signal }: ToolContext,
  uri: string,
): Promise<{ readonly mimeType: string; readonly text: string }> {
  const [, kind = '', id = ''] = /^impresario:\/\/([a-z]+)\/([^/?#]{1,600})$/.exec(uri) ?? []
  const path = PATHS[kind]?.(decoded(id))
  if (path === undefined || id === '') throw notThere(uri)
  try {
    const { body } = await api.call({ method: 'GET', path, signal })
    return kind === 'document' ? documentText(body) : { mimeType: 'application/json', text: jsonText(body) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.status === 404) throw notThere(uri)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${error.message} (${error.code})`)
  }
}

function documentText(body: Json): { readonly mimeType: string; readonly text: string } {
  return { mimeType: 'text/plain', text: cutText(textOf(objectOf(body)['text']), BOUNDS.fetchBytesMax) }
}

function jsonText(body: Json): string {
  return cutText(writeJson(body), BOUNDS.fetchBytesMax)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function notThere(uri: string): ProtocolError {
  const data: JsonObject = { uri: uri.slice(0, 300) }
  return new ProtocolError(ProtocolErrorCode.ResourceNotFound, 'There is no such resource.', data)
}
