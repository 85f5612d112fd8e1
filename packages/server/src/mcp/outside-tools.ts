import type { Log } from '@impresario/core'
import { OutsideError, OutsideServers } from '@impresario/mcp/outside'
import type { OutsideServersOptions, OutsideTool } from '@impresario/mcp/outside'
import { readJson, stringifyExact } from '@impresario/protocol'
import type { Data, JsonObject } from '@impresario/protocol'
import { ToolError } from '@impresario/tools'
import type { BuiltInTool, Tool, ToolRegistry } from '@impresario/tools'
import { VERSION } from '../runtime/version.ts'

export interface OutsideToolsOptions {
  /** The file that names the servers; empty where there are none. */
  readonly path: string
  readonly configs: OutsideServersOptions['configs']
  readonly log: Log
  readonly tools: ToolRegistry
  /** The worker of this process has to know of other tools. */
  readonly onChange: () => void
}

/** Connects the MCP servers of others, so that their tools stand among those of pipelines. */
export function outsideServers(options: OutsideToolsOptions): OutsideServers | undefined {
  const { path, configs, log, tools, onChange } = options
  if (path === '') return undefined
  return new OutsideServers({
    path,
    configs,
    version: VERSION,
    warn: (message, details) => log.warn(message, details),
    replaceTools: (server, told) => {
      const problems = replaceTools(tools, server, told)
      onChange()
      return problems
    },
  })
}

/** Each for itself: a schema that cannot be compiled keeps only its own tool out. */
function replaceTools(tools: ToolRegistry, server: string, told: readonly OutsideTool[]): readonly string[] {
  for (const { name } of tools.list()) if (name.startsWith(`mcp.${server}.`)) tools.remove(name)
  const problems: string[] = []
  for (const one of told) {
    try {
      tools.add([toolOf(one)])
    } catch (error) {
      problems.push(`${one.name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return problems
}

/** It runs in this process like a built-in one, and fails like one. */
function toolOf(outside: OutsideTool): Tool & Pick<BuiltInTool, 'run'> {
  const { name, description, input, output, timeoutSeconds } = outside
  return {
    name,
    description,
    kind: 'mcp',
    input,
    output,
    timeoutSeconds,
    scopes: [],
    isIdempotent: false,
    isReadOnly: false,
    run: async (given, { signal, meter, tracing }): Promise<Data> => {
      try {
        return await outside.run(readJson(stringifyExact(given)) as JsonObject, { signal, onUsage: meter, tracing })
      } catch (error) {
        if (!(error instanceof OutsideError)) throw error
        throw new ToolError(error.isLasting ? 'PERMANENT_ERROR' : 'TRANSIENT_ERROR', error.message)
      }
    },
  }
}
