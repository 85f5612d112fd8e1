import type { JsonObject } from '@impresario/protocol'
import type { Blueprint } from './blueprint.ts'
import { BOUNDS } from './bounds.ts'
import { runsAsTaskOnly, shownSchema } from './call-needs.ts'

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
export function describeBlueprint(blueprint: Blueprint): JsonObject {
  const { name, input, description } = blueprint
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
    execution: { taskSupport: runsAsTaskOnly(blueprint) ? 'required' : 'optional' },
  }
}

function schemaOf(input: JsonObject | undefined): JsonObject {
  const isShown =
    input !== undefined &&
    input['type'] === 'object' &&
    Buffer.byteLength(JSON.stringify(input)) <= BOUNDS.schemaBytesMax
  if (!isShown) return { type: 'object' }
  const shown = shownSchema(input)
  return '$defs' in shown ? { $schema: DIALECT, ...shown } : shown
}

/** In which definitions and references are read. Schemas without them are the same in every dialect that clients know. */
const DIALECT = 'https://json-schema.org/draft/2020-12/schema'
