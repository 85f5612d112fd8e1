import { z } from 'zod'
import { blueprintsOf } from '../blueprint.ts'
import { BOUNDS } from '../bounds.ts'
import { pageInput, pageOutput } from '../page.ts'
import { fitted, READS, tool, ToolRefusal } from '../tool.ts'

const listBlueprints = tool({
  name: 'list_blueprints',
  title: 'List blueprints',
  description: 'Lists the blueprints that start_job can run. With `name` it shows one with the schema of its input.',
  scopes: ['jobs:read'],
  traits: READS,
  input: z.strictObject({ name: z.string().max(200).optional(), ...pageInput }),
  output: pageOutput('blueprints'),
  run: async ({ name, limit = BOUNDS.rowsMax, cursor }, context) => {
    const all = await blueprintsOf(context)
    if (name === undefined) {
      const rest = cursor === undefined ? all : all.filter((one) => one.name > cursor)
      const rows = rest.slice(0, limit)
      const next = rest.length > limit ? (rows.at(-1)?.name ?? null) : null
      const shown = rows.map(({ name: id, version, description }) => ({
        name: id,
        version,
        ...(description === undefined ? {} : { description }),
      }))
      return { data: { blueprints: shown, next_cursor: next } }
    }
    const found = all.find((one) => one.name === name)
    if (found === undefined) {
      throw new ToolRefusal(`There is no blueprint "${name}". Call list_blueprints without a name to see all of them.`)
    }
    const { version, input } = found
    return { data: fitted({ blueprints: [{ name, version, input_schema: input ?? {} }], next_cursor: null }) }
  },
})

export const CATALOGUE_TOOLS = [listBlueprints]
