import { createRequestStateCodec, McpServer, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { CallToolResult, ListToolsResult, ServerContext } from '@modelcontextprotocol/server'
import type { JsonObject } from '@impresario/protocol'
import type { Api } from './api.ts'
import { callBlueprint } from './blueprint-call.ts'
import { blueprintTools } from './blueprint-tools.ts'
import { blueprintsOf } from './blueprint.ts'
import type { Blueprint } from './blueprint.ts'
import { servePrompts } from './prompts.ts'
import { serveResources } from './resources.ts'
import { capabilitiesOf, knowsForms, knowsTasks, TASKS_EXTENSION } from './session.ts'
import type { Era } from './session.ts'
import { serveOlderTasks, serveTasks } from './tasks.ts'
import type { ToolContext } from './tool.ts'
import { answered, callTool, describeTools, TOOL_NAMES } from './tool-set.ts'

export type ContextOf = (ctx: ServerContext) => ToolContext

export interface McpServerOptions {
  readonly name: string
  readonly version: string
  /** Seals what goes through the client between two rounds of a call. The same on all instances; at least 32 bytes. */
  readonly stateKey: Uint8Array
}

/** Who calls, as the HTTP side hands it on. */
export interface CallerInfo {
  readonly api: Api
  /** Where people reach the server. */
  readonly base: string
  /** Whose calls these are: what was sealed for one caller is worth nothing for another. */
  readonly callerId: string
  /** The connection is gone, or the server stops. */
  readonly signal: AbortSignal
}

const INSTRUCTIONS =
  'Impresario runs jobs (of blueprints) and automations (triggers and pipelines), durably. ' +
  'Start work with start_job and follow it with wait_job, or call a blueprint as a tool. ' +
  'Lists have at most 20 rows and a cursor. Ask the user before you decide approvals or delete anything.'

/** The server for one request, or for one session of an older client. */
export function createMcpServer(
  options: McpServerOptions,
  era: Era,
  callerOf: (ctx: ServerContext) => CallerInfo,
): McpServer {
  const { name, version } = options
  const codec = createRequestStateCodec<{ readonly jobId: string; readonly tool: string }>({
    key: options.stateKey,
    ttlSeconds: STATE_TTL_S,
    bind: (ctx) => `${ctx.mcpReq.method}\0${callerOf(ctx).callerId}`,
  })
  const whole = new McpServer(
    { name, version, title: 'Impresario' },
    {
      capabilities: {
        tools: {},
        resources: {},
        prompts: {},
        ...(era === 'modern'
          ? { extensions: { [TASKS_EXTENSION]: {} } }
          : { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }),
      },
      instructions: INSTRUCTIONS,
      requestState: { verify: (state, ctx) => codec.verify(state, ctx) },
    },
  )
  // Jobs as tasks need handlers of their own, which only the lower layer has.
  const { server } = whole
  const contextOf: ContextOf = (ctx) => toolContext(ctx, callerOf(ctx))
  server.setRequestHandler('tools/list', async (_request, ctx) => {
    const context = contextOf(ctx)
    const blueprints = context.api.allows('jobs:write') ? (await toolsOf(context)).values() : []
    // Boundary: our descriptions are JSON in the shape of the protocol.
    return { tools: describeTools(context.api, blueprints) } as unknown as ListToolsResult
  })
  server.setRequestHandler('tools/call', async ({ params }, ctx) => {
    const context = contextOf(ctx)
    const own = await callTool(params.name, params.arguments, context)
    if (own !== undefined) return asResult(own)
    const blueprint = (await toolsOf(context)).get(params.name)
    if (blueprint === undefined) throw unknownTool(params.name)
    const capabilities = capabilitiesOf(ctx, server)
    const state = ctx.mcpReq.requestState<{ readonly jobId: string; readonly tool: string }>()
    const call = {
      blueprint: blueprint.name,
      args: (params.arguments ?? {}) as JsonObject,
      jobId: state?.tool === blueprint.name ? state.jobId : undefined,
      responses: ctx.mcpReq.inputResponses ?? {},
      tasks: tasksFor(era, capabilities, params),
      canAsk: knowsForms(capabilities),
      seal: (jobId: string) => codec.mint({ jobId, tool: blueprint.name }, ctx),
    }
    let outcome: JsonObject | undefined
    const said = await answered(async () => {
      outcome = (await callBlueprint(call, context)) as JsonObject
      return { data: {} }
    })
    return asResult(outcome ?? said)
  })
  if (era === 'modern') serveTasks(server, contextOf)
  else serveOlderTasks(server, contextOf)
  serveResources(server, contextOf)
  servePrompts(server)
  return whole
}

/** A person may take a while to answer. */
const STATE_TTL_S = 86_400

function tasksFor(era: Era, capabilities: JsonObject, params: object): 'none' | 'extension' | 'older' {
  if (era === 'modern') return knowsTasks(capabilities) ? 'extension' : 'none'
  return 'task' in params && params.task !== undefined ? 'older' : 'none'
}

async function toolsOf(context: ToolContext): Promise<ReadonlyMap<string, Blueprint>> {
  // Who may not read blueprints starts them by name, with start_job.
  const all = context.api.allows('jobs:read') ? await blueprintsOf(context) : []
  return blueprintTools(all, TOOL_NAMES)
}

function unknownTool(name: string): ProtocolError {
  const message = `There is no tool "${name.slice(0, 100)}". Call tools/list; blueprints beyond the list are run by start_job.`
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message)
}

/** Boundary: results are made in the shape of the protocol, and the library checks them once more. */
function asResult(result: object): CallToolResult {
  return result as CallToolResult
}

function toolContext(ctx: ServerContext, { api, base, signal: gone }: CallerInfo): ToolContext {
  const { signal, _meta: meta } = ctx.mcpReq
  const token = meta?.progressToken
  return {
    api,
    base,
    signal: AbortSignal.any([signal, gone]),
    progress: ({ done, total, message }) => {
      if (token === undefined) return
      const params = {
        progressToken: token,
        progress: done,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      }
      // The caller may be gone: then there is nothing to tell.
      ctx.mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
    },
  }
}
