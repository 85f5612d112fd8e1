import { readFileSync } from 'node:fs'
import { ImpresarioError } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import { fingerprintOf, readOutsideConfig } from './outside-config.ts'
import type { OutsideConfig, ToldTool } from './outside-config.ts'
import { OutsideServer } from './outside-server.ts'
import type { OutsideCall } from './outside-server.ts'
import { Pins } from './pins.ts'

/** A tool of a connected server, as pipelines name it: `mcp.github.create_issue`. */
export interface OutsideTool {
  readonly name: string
  readonly description: string
  readonly input: JsonObject
  readonly output: JsonObject
  readonly timeoutSeconds: number
  run(args: JsonObject, call: OutsideCall): Promise<Json>
}

export interface OutsideServersOptions {
  /** The file that names the servers. */
  readonly path: string
  /** What `readOutsideFile` found there. */
  readonly configs: readonly OutsideConfig[]
  readonly version: string
  /** All tools of this server, in place of those that it had. Gives those that could not be taken, with the reason. */
  readonly replaceTools: (server: string, tools: readonly OutsideTool[]) => readonly string[]
  readonly warn: (message: string, details: Readonly<Record<string, unknown>>) => void
}

const TOOL_NAME = /^\w[\w-]{0,99}(?:\.[\w-]{1,50}){0,3}$/

/** The servers of others that are configured, and what became of their tools. */
export class OutsideServers {
  readonly #options: OutsideServersOptions
  readonly #servers: readonly OutsideServer[]
  readonly #pins: Pins

  constructor(options: OutsideServersOptions) {
    this.#options = options
    this.#pins = new Pins(`${options.path}.pins`)
    this.#servers = options.configs.map((config) => {
      const server: OutsideServer = new OutsideServer({
        config,
        version: options.version,
        onTools: (told) => this.#take(config.name, config.timeoutSeconds, told, server),
        onProblem: (problem) => options.warn(problem, { server: config.name }),
      })
      return server
    })
  }

  async start(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.start()))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()))
  }

  #take(name: string, timeoutSeconds: number, told: readonly ToldTool[], server: OutsideServer): void {
    const { replaceTools, warn } = this.#options
    const tools: OutsideTool[] = []
    for (const tool of told) {
      const whole = `mcp.${name}.${tool.name}`
      if (!TOOL_NAME.test(tool.name)) {
        warn('a tool of an MCP server has a name that cannot be used', { server: name })
      } else if (this.#pins.accept(whole, fingerprintOf(tool))) {
        tools.push({
          name: whole,
          description: `Of the MCP server ${name}: ${tool.description}`,
          input: tool.input,
          output: tool.output ?? {},
          timeoutSeconds,
          run: (args, call) => server.call(tool.name, args, call),
        })
      } else {
        const advice = `Look at it, and remove its line from ${this.#options.path}.pins to use it as it is now.`
        warn('a tool of an MCP server has changed and is in quarantine', { server: name, tool: whole, advice })
      }
    }
    for (const problem of replaceTools(name, tools)) {
      warn('a tool of an MCP server cannot be used', { server: name, problem })
    }
  }
}

/** The servers that the file names. Refuses a file that cannot be used. */
export function readOutsideFile(path: string): readonly OutsideConfig[] {
  return readOutsideConfig(path, textIn(path))
}

function textIn(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ImpresarioError('INVALID_CONFIGURATION', `${path} cannot be read.`, { cause })
  }
}
