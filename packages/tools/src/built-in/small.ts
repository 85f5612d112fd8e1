import type { DataObject } from '@impresario/protocol'
import type { BuiltInTool } from '../tool.ts'

const PLAIN = { kind: 'built_in', timeoutSeconds: 10, scopes: [], isIdempotent: true, isReadOnly: true } as const

/** Writes a line into the log of the run. */
export const log: BuiltInTool = {
  ...PLAIN,
  name: 'log',
  description: 'Writes a message into the log of the run, and gives it back.',
  input: {
    type: 'object',
    additionalProperties: false,
    required: ['message'],
    properties: { message: { type: 'string', maxLength: 10_000 }, details: { type: 'object' } },
  },
  output: { type: 'object', required: ['message'], properties: { message: { type: 'string' } } },
  run: (input, call) => {
    const { message, details } = lineIn(input)
    call.log(message, details)
    return { message }
  },
}

/** Gives its input back: a place to compute a value that several steps use. */
export const transform: BuiltInTool = {
  ...PLAIN,
  name: 'transform',
  description: 'Gives back the value that its template makes. Use it to compute something once for several steps.',
  input: { type: 'object', additionalProperties: false, required: ['value'], properties: { value: {} } },
  output: {},
  run: ({ value }) => value ?? null,
}

/** Boundary: the schema of the tool was checked before. */
function lineIn(input: DataObject): { readonly message: string; readonly details?: DataObject } {
  return input as unknown as { message: string; details?: DataObject }
}
