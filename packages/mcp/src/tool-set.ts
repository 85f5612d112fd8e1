import { writeJson } from '@impresario/protocol'
import type { ErrorCode, JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { ApiError } from './api.ts'
import type { Api } from './api.ts'
import { BOUNDS } from './bounds.ts'
import { describeBlueprint } from './blueprint-tools.ts'
import type { Blueprint } from './blueprint.ts'
import type { CallResult } from './job-result.ts'
import { ToolRefusal } from './tool.ts'
import type { Tool, ToolAnswer, ToolContext } from './tool.ts'
import { AUTOMATION_TOOLS } from './tools/automation-tools.ts'
import { CATALOGUE_TOOLS } from './tools/catalogue-tools.ts'
import { JOB_TOOLS } from './tools/job-tools.ts'
import { SEARCH_TOOLS } from './tools/search-tools.ts'

/** In the order in which assistants see them, which never changes by itself. */
const TOOLS: readonly Tool[] = [...SEARCH_TOOLS, ...JOB_TOOLS, ...CATALOGUE_TOOLS, ...AUTOMATION_TOOLS]

const BY_NAME: ReadonlyMap<string, Tool> = new Map(TOOLS.map((one) => [one.name, one]))
export const TOOL_NAMES: ReadonlySet<string> = new Set(BY_NAME.keys())

/**
 * The tools that a caller may use: ours, then the blueprints by name, as many as fit. The list is part of what an assistant
 * reads on every turn, so it has a bound; blueprints beyond it are started by `start_job`.
 */
export function describeTools(api: Api, blueprints: Iterable<Blueprint>): readonly JsonObject[] {
  const described = TOOLS.filter(({ scopes }) => scopes.some((scope) => api.allows(scope))).map(describeTool)
  if (!api.allows('jobs:write')) return described
  let bytes = described.reduce((sum, one) => sum + Buffer.byteLength(JSON.stringify(one)), 0)
  for (const blueprint of blueprints) {
    const one = describeBlueprint(blueprint)
    bytes += Buffer.byteLength(JSON.stringify(one))
    if (bytes > BOUNDS.toolsBytesMax) break
    described.push(one)
  }
  return described
}

function describeTool({ name, title, description, traits, input, output }: Tool): JsonObject {
  return {
    name,
    title,
    description,
    inputSchema: schemaOf(input, 'input'),
    outputSchema: schemaOf(output, 'output'),
    annotations: {
      readOnlyHint: traits.isReadOnly,
      destructiveHint: traits.isDestructive,
      idempotentHint: traits.isIdempotent,
      openWorldHint: false,
    },
  }
}

/** Short: what every schema of ours has in common says nothing to an assistant. */
function schemaOf(schema: z.ZodObject, io: 'input' | 'output'): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonObject
  return io === 'output' ? (withoutAny(rest) as JsonObject) : rest
}

/** `additionalProperties: {}` is what holds without it. */
function withoutAny(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutAny)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => key !== 'additionalProperties' && key !== 'propertyNames')
  return Object.fromEntries(kept.map(([key, inner]) => [key, withoutAny(inner)]))
}

/** Calls a tool of ours. Every refusal is an answer that says what to do next; `undefined`: there is no such tool. */
export async function callTool(name: string, args: unknown, context: ToolContext): Promise<CallResult | undefined> {
  const found = BY_NAME.get(name)
  if (found === undefined) return undefined
  const read = found.input.safeParse(args ?? {})
  if (!read.success) return refused(`${problemsOf(read.error)} Mend the arguments of ${name} and call it again.`)
  return answered(() => found.run(read.data as JsonObject, context))
}

/** What came of a call, in the shape of the protocol. */
export async function answered(work: () => Promise<ToolAnswer>): Promise<CallResult> {
  try {
    const { data, text, isError } = await work()
    return {
      content: [{ type: 'text', text: text ?? writeJson(data) }],
      structuredContent: data,
      ...(isError === true ? { isError } : {}),
    }
  } catch (error) {
    if (error instanceof ToolRefusal) return refused(error.message)
    if (error instanceof ApiError) return refused(adviceOn(error))
    throw error
  }
}

function refused(text: string): CallResult {
  return { content: [{ type: 'text', text }], isError: true }
}

function problemsOf(error: z.ZodError): string {
  return error.issues
    .slice(0, 5)
    .map(({ path, message }) => `${path.length === 0 ? 'The arguments' : `\`${path.join('.')}\``}: ${message}.`)
    .join(' ')
    .slice(0, 1_000)
}

/** The refusal of the API, and what to do about it. */
function adviceOn({ code, message, retryAfterSeconds, status }: ApiError): string {
  const advice = code === 'UNKNOWN' ? undefined : ADVICE[code]
  const later = retryAfterSeconds === undefined ? undefined : `Try again after ${retryAfterSeconds} seconds.`
  const fallback = status >= 500 ? 'Try again in a moment.' : 'Mend the arguments and call the tool again.'
  return `${message} (${code}) ${advice ?? later ?? fallback}`
}

const ADVICE: Partial<Record<ErrorCode, string>> = {
  UNAUTHENTICATED: 'Give this server a valid token in its configuration.',
  FORBIDDEN: 'The token may not do this. Ask the administrator for a token with this right.',
  JOB_NOT_FOUND: 'Call list_jobs to see which jobs there are.',
  BLUEPRINT_NOT_FOUND: 'Call list_blueprints to see which blueprints there are.',
  NOT_FOUND: 'List what there is with list_automations, list_runs or search, and take an id from there.',
  NOT_WAITING: 'Call get_job to see how the job stands now.',
  STALE_DECISION: 'Call list_approvals to see what is asked now.',
  STALE_REVISION: 'Call get_automation, make the change in what it is now, and give its revision.',
  QUOTA_EXCEEDED: 'The quota of this client is used up. Ask the administrator.',
  IDEMPOTENCY_KEY_REUSED: 'Use another idempotency_key for another request.',
}
