import { createRequestStateCodec, McpServer, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { CallToolResult, ListToolsResult, ServerCapabilities, ServerContext } from '@modelcontextprotocol/server'
import type { JsonObject } from '@impresario/protocol'
import { serveBlueprint } from './blueprint-request.ts'
import type { CallState } from './blueprint-request.ts'
import { blueprintTools } from './blueprint-tools.ts'
import { blueprintsOf } from './blueprint.ts'
import type { Blueprint } from './blueprint.ts'
import type { CallerInfo } from './caller.ts'
import { serveCompletion } from './completion.ts'
import type { Inquiries } from './inquiries.ts'
import { lineTo } from './line.ts'
import type { LineOf } from './line.ts'
import { serveLogging, sessionKey, tellingOf } from './log-lines.ts'
import type { LogLevels } from './log-lines.ts'
import { servePrompts } from './prompts.ts'
import { serveResources } from './resources.ts'
import { capabilitiesOf, TASKS_EXTENSION } from './session.ts'
import type { Era } from './session.ts'
import { serveOlderTasks, serveTasks } from './tasks.ts'
import { textOf } from './tool.ts'
import type { ToolContext } from './tool.ts'
import { answered, callTool, describeTools, TOOL_NAMES } from './tool-set.ts'

export type ContextOf = (ctx: ServerContext) => ToolContext

export interface McpServerOptions {
  readonly name: string
  readonly version: string
  /** Seals what goes through the client between two rounds of a call. The same on all instances; at least 32 bytes. */
  readonly stateKey: Uint8Array
  /** Questions to clients of an older revision. */
  readonly inquiries: Inquiries
  /** Which lines clients of an older revision want. */
  readonly levels: LogLevels
  /** The end of a sentence that says which of these names was perhaps meant, or nothing. */
  readonly didYouMean: (name: string, known: readonly string[]) => string
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
  const codec = createRequestStateCodec<CallState>({
    key: options.stateKey,
    ttlSeconds: STATE_TTL_S,
    bind: (ctx) => `${ctx.mcpReq.method}\0${callerOf(ctx).callerId}`,
  })
  const whole = new McpServer(
    { name, version, title: 'Impresario' },
    {
      capabilities: offered(era),
      instructions: INSTRUCTIONS,
      requestState: { verify: (state, ctx) => codec.verify(state, ctx) },
    },
  )
  // Jobs as tasks need handlers of their own, which only the lower layer has.
  const { server } = whole
  const sessionOf = (ctx: ServerContext): string => sessionKey(ctx, callerOf(ctx).callerId)
  const contextOf: ContextOf = (ctx) => ({
    ...toolContext(ctx, callerOf(ctx)),
    tellLine: tellingOf(ctx, era, options.levels, sessionOf(ctx)),
  })
  const lineOf: LineOf = (ctx) => (era === 'legacy' ? lineTo(server, options.inquiries, callerOf(ctx), ctx) : undefined)
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
    const blueprints = await toolsOf(context)
    const blueprint = blueprints.get(params.name)
    if (blueprint === undefined) {
      const known = describeTools(context.api, blueprints.values()).map((one) => textOf(one['name']))
      throw unknownTool(params.name, options.didYouMean(params.name, known))
    }
    const request = {
      blueprint,
      era,
      params,
      capabilities: capabilitiesOf(ctx, server, callerOf(ctx).greeted),
      ctx,
      line: lineOf(ctx),
      seal: (state: CallState) => codec.mint(state, ctx),
    }
    let outcome: JsonObject | undefined
    const said = await answered(async () => {
      outcome = await serveBlueprint(request, context)
      return { data: {} }
    })
    return asResult(outcome ?? said)
  })
  if (era === 'modern') serveTasks(server, contextOf)
  else serveOlderTasks(server, contextOf, lineOf)
  serveResources(server, contextOf)
  servePrompts(server)
  serveCompletion(server, contextOf)
  if (era === 'legacy') serveLogging(server, options.levels, sessionOf)
  return whole
}

function offered(era: Era): ServerCapabilities {
  return {
    tools: {},
    resources: {},
    prompts: {},
    completions: {},
    logging: {},
    ...(era === 'modern'
      ? { extensions: { [TASKS_EXTENSION]: {} } }
      : { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }),
  }
}

/** A person may take a while to answer. */
const STATE_TTL_S = 86_400

async function toolsOf(context: ToolContext): Promise<ReadonlyMap<string, Blueprint>> {
  // Who may not read blueprints starts them by name, with start_job.
  const all = context.api.allows('jobs:read') ? await blueprintsOf(context) : []
  return blueprintTools(all, TOOL_NAMES)
}

function unknownTool(name: string, suggestion: string): ProtocolError {
  const message = `There is no tool "${name.slice(0, 100)}".${suggestion} Call tools/list; blueprints beyond the list are run by start_job.`
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message)
}

/** Boundary: results are made in the shape of the protocol, and the library checks them once more. */
function asResult(result: object): CallToolResult {
  return result as CallToolResult
}

function toolContext(ctx: ServerContext, { api, base, signal: gone }: CallerInfo): ToolContext {
  const { signal, _meta: meta } = ctx.mcpReq
  const token = meta?.progressToken
  let told = 0
  return {
    api,
    base,
    signal: AbortSignal.any([signal, gone]),
    progress: ({ done, total, message }) => {
      if (token === undefined) return
      // It has to increase over all the waits of one call.
      told = Math.max(done, told + 1)
      const params = {
        progressToken: token,
        progress: told,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      }
      // The caller may be gone: then there is nothing to tell.
      ctx.mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
    },
  }
}
