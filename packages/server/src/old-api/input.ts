import { isJsonObject } from '@impresario/protocol'
import type { z } from 'zod'

/** One thing that is wrong with a request, as clients of the old system read it. */
export interface InputProblem {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
}

export class InvalidInput extends Error {
  override readonly name = 'InvalidInput'
  readonly problems: readonly InputProblem[]

  constructor(problems: readonly InputProblem[]) {
    super(problems.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '))
    this.problems = problems
  }
}

export function invalid(place: readonly (string | number)[], msg: string): InvalidInput {
  return new InvalidInput([{ loc: place, msg, type: 'value_error' }])
}

export function readBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  return read(schema, body ?? {}, 'body')
}

/** Empty values are none. */
export function readFilter<T extends z.ZodType>(schema: T, query: unknown): z.output<T> {
  const given = isJsonObject(query) ? Object.fromEntries(Object.entries(query).filter(([, value]) => value !== '')) : {}
  return read(schema, given, 'query')
}

const PROBLEMS_MAX = 20

function read<T extends z.ZodType>(schema: T, value: unknown, where: string): z.output<T> {
  const found = schema.safeParse(value)
  if (found.success) return found.data
  throw new InvalidInput(
    found.error.issues.slice(0, PROBLEMS_MAX).map((issue) => ({
      loc: [where, ...issue.path.map((part) => (typeof part === 'number' ? part : String(part)))],
      msg: issue.message,
      type: typeOf(issue),
    })),
  )
}

function typeOf({ code, message }: z.core.$ZodIssue): string {
  if (code === 'invalid_type') return message.includes('received undefined') ? 'missing' : 'type_error'
  return code === 'invalid_value' ? 'enum' : 'value_error'
}
