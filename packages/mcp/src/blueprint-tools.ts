import type { JsonObject } from '@impresario/protocol'
import type { Blueprint } from './blueprint.ts'
import { BOUNDS } from './bounds.ts'

/** Assistants allow these characters in names of tools. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,64}$/

/** Blueprints as tools, by the name of the tool. Those whose name cannot be one are reached by `start_job`. */
export function blueprintTools(
  blueprints: readonly Blueprint[],
  taken: ReadonlySet<string>,
): ReadonlyMap<string, Blueprint> {
  const tools = new Map<string, Blueprint>()
  for (const blueprint of blueprints) {
    if (TOOL_NAME.test(blueprint.name) && !taken.has(blueprint.name)) tools.set(blueprint.name, blueprint)
  }
  return tools
}

/** How the protocol describes a blueprint. */
export function describeBlueprint({ name, input, description }: Blueprint): JsonObject {
  const said = description ?? (typeof input?.['description'] === 'string' ? input['description'] : undefined)
  return {
    name,
    description: `${said ?? `Runs the blueprint ${name} and gives its result.`} Runs as a durable job.`.slice(0, 500),
    inputSchema: schemaOf(input),
    annotations: {
      title: name,
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: true,
    },
    execution: { taskSupport: 'optional' },
  }
}

function schemaOf(input: JsonObject | undefined): JsonObject {
  const isShown =
    input !== undefined &&
    input['type'] === 'object' &&
    Buffer.byteLength(JSON.stringify(input)) <= BOUNDS.schemaBytesMax
  return isShown ? input : { type: 'object' }
}
