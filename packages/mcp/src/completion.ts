import { blueprintsOf } from './blueprint.ts'
import { ApiError } from './api.ts'
import type { ContextOf } from './mcp-server.ts'
import type { LowServer } from './session.ts'
import { rowsOf, textOf } from './tool.ts'
import type { ToolContext } from './tool.ts'

/* Values for the arguments of prompts and of addresses of resources, while a person types them. */

/** What the protocol allows in one answer. */
const VALUES_MAX = 100

type Source = (context: ToolContext) => Promise<readonly string[]>

const newest = (path: string, field: string): Source => {
  return async ({ api, signal }) => {
    const { body } = await api.call({ method: 'GET', path, query: { limit: VALUES_MAX }, signal })
    return rowsOf(body).map((row) => textOf(row[field]))
  }
}

/** By the name of the argument: it means the same everywhere. */
const SOURCES: Readonly<Record<string, Source>> = {
  name: async (context) => (await blueprintsOf(context)).map(({ name }) => name),
  job_id: newest('/jobs', 'job_id'),
  automation_id: newest('/automations', 'id'),
  run_id: newest('/runs', 'id'),
}

export function serveCompletion(server: LowServer, contextOf: ContextOf): void {
  server.setRequestHandler('completion/complete', async ({ params: { argument } }, ctx) => {
    const { name, value } = argument
    const source = Object.hasOwn(SOURCES, name) ? SOURCES[name] : undefined
    const all = source === undefined ? [] : await allowed(source, contextOf(ctx))
    const found = all.filter((one) => one.toLowerCase().startsWith(value.toLowerCase()))
    const values = found.slice(0, VALUES_MAX)
    return { completion: { values, total: found.length, hasMore: found.length > values.length } }
  })
}

/** A caller without the scope gets no values: they are a help, and nothing that has to be there. */
async function allowed(source: Source, context: ToolContext): Promise<readonly string[]> {
  try {
    return await source(context)
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return []
    throw error
  }
}
