import { writeJson } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { ApiError, pathTo } from '../api.ts'
import type { ApiReply } from '../api.ts'
import { BOUNDS } from '../bounds.ts'
import { jobView, standing } from '../job-view.ts'
import { cutText, objectOf, READS, rowsOf, textOf, tool, ToolRefusal, withTimes } from '../tool.ts'
import type { ToolAnswer, ToolContext } from '../tool.ts'

/*
 * The two tools that connectors of assistants look for by name. Their shapes are fixed by those connectors: `search` gives
 * results with id, title and url; `fetch` gives id, title, text, url and metadata; both also as JSON in one text.
 */

type Row = Readonly<{ id: string; title: string; url: string }>

const search = tool({
  name: 'search',
  title: 'Search',
  description: 'Finds documents, jobs and automations by words. Use `fetch` with an id of the results to read one.',
  scopes: ['documents:search', 'jobs:read', 'automations:read'],
  traits: READS,
  input: z.strictObject({ query: z.string().min(1).max(500) }),
  output: z.object({ results: z.array(z.object({ id: z.string(), title: z.string(), url: z.string() })) }),
  run: async ({ query }, context) => {
    const documents = await foundDocuments(context, query)
    const others = await Promise.all([foundAutomations(context, query), foundJobs(context, query)])
    const results = [...documents, ...others.flat()].slice(0, BOUNDS.rowsMax).map((row) => ({ ...row }))
    return { data: { results } }
  },
})

async function foundDocuments({ api, signal, base }: ToolContext, q: string): Promise<readonly Row[]> {
  const query = { q, limit: 10 }
  const reply = await orNothing(api.call({ method: 'GET', path: '/documents', query, signal }))
  return rowsOf(objectOf(reply)['hits'] ?? []).map(({ id, title, name, path }) => ({
    id: `document:${numberOf(id)}`,
    title: textOf(title) || textOf(name) || textOf(path),
    url: `${base}/api/v1/documents/${numberOf(id)}/text`,
  }))
}

async function foundAutomations({ api, signal, base }: ToolContext, text: string): Promise<readonly Row[]> {
  const query = { search: text.slice(0, 200), limit: 5 }
  return rowsOf(await orNothing(api.call({ method: 'GET', path: '/automations', query, signal }))).map(
    ({ id, title }) => ({
      id: `automation:${textOf(id)}`,
      title: textOf(title),
      url: `${base}/api/v1/automations/${textOf(id)}`,
    }),
  )
}

async function foundJobs({ api, signal, base }: ToolContext, text: string): Promise<readonly Row[]> {
  const query = { q: text.slice(0, 200), limit: 5 }
  return rowsOf(await orNothing(api.call({ method: 'GET', path: '/jobs', query, signal }))).map((job) => ({
    id: `job:${textOf(job['job_id'])}`,
    title: `${textOf(job['blueprint_name'])}: ${standing(job)}`,
    url: `${base}/api/v1/jobs/${textOf(job['job_id'])}`,
  }))
}

/** What the caller may not see, or what this server does not have, is left out. */
async function orNothing(reply: Promise<ApiReply>): Promise<Json> {
  try {
    return (await reply).body
  } catch (error) {
    if (error instanceof ApiError && LEFT_OUT.has(error.status)) return null
    throw error
  }
}

function numberOf(value: Json | undefined): number {
  return typeof value === 'number' ? value : 0
}

const LEFT_OUT: ReadonlySet<number> = new Set([400, 403, 404])

const fetchOne = tool({
  name: 'fetch',
  title: 'Read a search result',
  description: 'Reads one result of `search` by its id.',
  scopes: ['documents:search', 'jobs:read', 'automations:read'],
  traits: READS,
  input: z.strictObject({ id: z.string().min(1).max(300) }),
  output: z.object({
    id: z.string(),
    title: z.string(),
    text: z.string(),
    url: z.string(),
    metadata: z.looseObject({}).optional(),
  }),
  run: async ({ id }, context) => {
    const [, kind = '', name = ''] = /^(document|job|automation|run):(.+)$/s.exec(id) ?? []
    const reader = READERS[kind]
    if (reader === undefined) {
      throw new ToolRefusal(`"${id.slice(0, 100)}" is no id of a result. Call search and take an id from its results.`)
    }
    return reader(context, id, name)
  },
})

const READERS: Readonly<Record<string, (context: ToolContext, id: string, name: string) => Promise<ToolAnswer>>> = {
  document: async ({ api, signal, base }, id, name) => {
    const body = objectOf((await api.call({ method: 'GET', path: pathTo('documents', name, 'text'), signal })).body)
    const whole = textOf(body['text'])
    const text = cutText(whole, BOUNDS.fetchBytesMax)
    const url = `${base}/api/v1/documents/${name}/text`
    const path = textOf(body['path'])
    return { data: { id, title: path, text, url, metadata: { path, is_cut: text.length < whole.length } } }
  },
  job: (context, id, name) =>
    recordOf(context, id, pathTo('jobs', name), (job) => [textOf(job['blueprint_name']), jobView(job)]),
  automation: (context, id, name) =>
    recordOf(context, id, pathTo('automations', name), (found) => [textOf(found['title']), withTimes(found)]),
  run: (context, id, name) =>
    recordOf(context, id, pathTo('runs', name), (run) => [textOf(run['title']), withTimes(run)]),
}

async function recordOf(
  { api, signal, base }: ToolContext,
  id: string,
  path: string,
  seen: (record: JsonObject) => readonly [title: string, shown: JsonObject],
): Promise<ToolAnswer> {
  const { body } = await api.call({ method: 'GET', path, signal })
  const [title, shown] = seen(objectOf(body))
  const text = cutText(writeJson(shown), BOUNDS.fetchBytesMax)
  return { data: { id, title, text, url: `${base}/api/v1${path}`, metadata: { status: shown['status'] ?? null } } }
}

export const SEARCH_TOOLS = [search, fetchOne]
