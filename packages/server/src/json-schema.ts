import { z } from 'zod'

/** A zod schema as JSON Schema, for the validator of the HTTP layer. Made once at the start. */
export function jsonSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: 'draft-7', io: 'input', unrepresentable: 'any' })
  return rest
}
