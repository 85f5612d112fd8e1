import type { JsonObject } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'
import { rowsOf, textOf } from './tool.ts'
import type { ToolContext } from './tool.ts'

/** What is known of a blueprint that a caller may start. */
export interface Blueprint {
  readonly name: string
  readonly version: number
  readonly description: string | undefined
  /** JSON Schema of its input, where its schema can say it. */
  readonly input: JsonObject | undefined
}

/** The newest version of each blueprint, by name. */
export async function blueprintsOf({
  api,
  signal,
}: Pick<ToolContext, 'api' | 'signal'>): Promise<readonly Blueprint[]> {
  const { body } = await api.call({ method: 'GET', path: '/blueprints', signal })
  const newest = new Map<string, Blueprint>()
  for (const row of rowsOf(body)) {
    const blueprint = readBlueprint(row)
    const known = newest.get(blueprint.name)
    if (known === undefined || known.version < blueprint.version) newest.set(blueprint.name, blueprint)
  }
  return [...newest.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function readBlueprint({ name, version, description, input_schema: input }: JsonObject): Blueprint {
  return {
    name: textOf(name),
    version: typeof version === 'number' ? version : 1,
    description: typeof description === 'string' ? description : undefined,
    input: isJsonObject(input) && Object.keys(input).length > 0 ? input : undefined,
  }
}
