import { z } from 'zod'

/** A zod schema as JSON Schema, for the validator of the HTTP layer and for the API document. Made once at the start. */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'input'): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: 'draft-7', io, unrepresentable: 'any' })
  return rest
}
