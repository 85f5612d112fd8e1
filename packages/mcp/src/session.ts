import { CLIENT_CAPABILITIES_META_KEY, MissingRequiredClientCapabilityError } from '@modelcontextprotocol/server'
import type { McpServer, ServerContext } from '@modelcontextprotocol/server'
import { isJsonObject } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'

/** The extension under which clients of 2026-07-28 know tasks. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/** The layer of the library on which requests have handlers. */
export type LowServer = McpServer['server']

/** Which revision of the protocol a request speaks. */
export type Era = 'legacy' | 'modern'

/** How the client of a call follows a job: as a task of which revision, or not at all. */
export type TaskStyle = 'none' | 'extension' | 'older'

/** What a client says that it can do: on every request since 2026-07-28, once at the beginning before. */
export function capabilitiesOf(ctx: ServerContext, server: LowServer, greeted: JsonObject = {}): JsonObject {
  // Boundary: what clients send is JSON, and the names of the envelope are not in its type.
  const envelope = ctx.mcpReq.envelope as Readonly<Record<string, unknown>> | undefined
  // oxlint-disable-next-line typescript/no-deprecated -- the only place where an older client says it
  const told: unknown = envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities() ?? greeted
  return typeof told === 'object' && told !== null ? (told as JsonObject) : {}
}

export function knowsTasks(capabilities: JsonObject): boolean {
  const { extensions } = capabilities
  return isJsonObject(extensions) && isJsonObject(extensions[TASKS_EXTENSION])
}

/** Whether it can show a form to a person. A client that names no mode shows forms. */
export function knowsForms(capabilities: JsonObject): boolean {
  const { elicitation } = capabilities
  if (!isJsonObject(elicitation)) return false
  return Object.keys(elicitation).length === 0 || elicitation['form'] !== undefined
}

/** Whether it can lead a person to a page. */
export function knowsLinks(capabilities: JsonObject): boolean {
  const { elicitation } = capabilities
  return isJsonObject(elicitation) && isJsonObject(elicitation['url'])
}

export function mustKnowTasks(capabilities: JsonObject): void {
  if (knowsTasks(capabilities)) return
  throw new MissingRequiredClientCapabilityError({
    requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
  })
}
