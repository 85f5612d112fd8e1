import { ImpresarioError } from '@impresario/protocol'
import type { ToolCheck } from '@impresario/automations'
import { compileSchema } from './schema-check.ts'
import type { SchemaCheck } from './schema-check.ts'
import type { Tool } from './tool.ts'

const NAME = /^[A-Za-z][\w-]*(?:\.[\w-]+)*$/
const TOOLS_MAX = 5_000

export interface RegisteredTool {
  readonly tool: Tool
  readonly checkInput: SchemaCheck
  readonly checkOutput: SchemaCheck
}

/** All tools that there are, by name, with their schemas compiled. */
export class ToolRegistry {
  readonly #tools = new Map<string, RegisteredTool>()

  /** Adds tools, or refuses all of them when one cannot work. A name belongs to the first that took it. */
  add(tools: readonly Tool[]): void {
    const compiled = tools.map((tool) => registered(tool))
    const names = new Set<string>()
    for (const { tool } of compiled) {
      if (this.#tools.has(tool.name) || names.has(tool.name)) {
        throw new ImpresarioError('CONFLICT', `There is a tool "${tool.name}" already. Names must be unique.`)
      }
      names.add(tool.name)
    }
    if (this.#tools.size + compiled.length > TOOLS_MAX) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `There can be ${TOOLS_MAX} tools.`)
    }
    for (const each of compiled) this.#tools.set(each.tool.name, each)
  }

  remove(name: string): void {
    this.#tools.delete(name)
  }

  named(name: string): RegisteredTool | undefined {
    return this.#tools.get(name)
  }

  /** In the order of their names. */
  list(): readonly Tool[] {
    return [...this.#tools.values()].map(({ tool }) => tool).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** What the compiler of pipelines asks, for an agent with these scopes. */
  checkFor(hasScopes: (scopes: readonly string[]) => boolean): ToolCheck {
    return {
      named: (name) => {
        const found = this.#tools.get(name)
        if (found === undefined || !hasScopes(found.tool.scopes)) return undefined
        return { check: found.checkInput, takesSecrets: found.tool.isKeeping !== true }
      },
      similar: (name) => this.#similar(name, hasScopes),
    }
  }

  #similar(name: string, hasScopes: (scopes: readonly string[]) => boolean): readonly string[] {
    return this.list()
      .filter((tool) => hasScopes(tool.scopes))
      .map((tool) => ({ name: tool.name, distance: distanceOf(name.slice(0, 100), tool.name) }))
      .filter(({ distance }) => distance <= 3)
      .toSorted((a, b) => a.distance - b.distance)
      .slice(0, 3)
      .map((each) => each.name)
  }
}

function registered(tool: Tool): RegisteredTool {
  if (!NAME.test(tool.name) || tool.name.length > 200) {
    throw new ImpresarioError(
      'INPUT_REFUSED',
      `"${tool.name.slice(0, 100)}" is not a name for a tool. Write it as http.request.`,
    )
  }
  return {
    tool,
    checkInput: compileSchema(`The input schema of "${tool.name}"`, tool.input),
    checkOutput: compileSchema(`The output schema of "${tool.name}"`, tool.output),
  }
}

/** How many letters differ. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const kept = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(kept, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
