import { z } from 'zod'

/** Blueprints as clients see them. */
export const blueprintBody = z.looseObject({
  name: z.string(),
  version: z.int(),
  start: z.string(),
  endpoint: z.string().nullable(),
  api_version: z.string().nullable(),
  input_schema: z.looseObject({}).nullable().describe('JSON Schema of the initial data, where the blueprint has one.'),
  states: z.array(
    z.looseObject({
      name: z.string(),
      kind: z.string(),
      outcome: z.string().nullable(),
      waits: z.array(z.string()).describe('What it waits for beside tasks, children and people, such as `after 3d`.'),
      has_undo: z.boolean().describe('What it does can be undone.'),
      tasks: z
        .array(z.string())
        .describe('Tasks that it hands out, as far as its code shows: types, or names of contracts.'),
      children: z.array(z.string()).describe('Blueprints that it runs as children, the same way.'),
      asks_person: z.boolean().describe('Whether it asks a person.'),
      transitions: z.array(z.object({ to: z.string(), label: z.string().nullable() })),
    }),
  ),
})
export const blueprintList = z.array(blueprintBody)
export const blueprintQuery = z.looseObject({
  version: z.coerce.number().int().min(1).optional().describe('The latest without it.'),
})
export const graphQuery = blueprintQuery.extend({
  format: z.enum(['dot', 'svg']).optional().describe('Goes before the header Accept; DOT without both.'),
})
