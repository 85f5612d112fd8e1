import type { Schema, SchemaIssue, SchemaResult } from '../contract.ts'
import { isExactNumber } from './exact-number.ts'

/**
 * Validates a value with a schema. Schemas treat numbers as doubles, so one that expects a number refuses a `bigint`.
 * If that is the only problem, the value is validated again with the nearest doubles, and gets its own numbers back
 * afterwards. If one of them cannot be restored, because the schema transformed it, the error stands: nothing is
 * rounded silently.
 */
export function checkSchema<Output>(
  schema: Schema<unknown, Output>,
  value: unknown,
): SchemaResult<Output> | Promise<SchemaResult<Output>> {
  const { validate } = schema['~standard']
  const again = (first: SchemaResult<Output>): SchemaResult<Output> | Promise<SchemaResult<Output>> => {
    const count = first.issues === undefined ? 0 : exactIn(value)
    if (count === 0) return first
    const rough = roughOf(value)
    const restored = (second: SchemaResult<Output>): SchemaResult<Output> => {
      if (second.issues !== undefined) return first
      const found = { count: 0 }
      const output = restore(second.value, rough, value, found)
      return found.count === count ? { value: asOutput<Output>(output) } : first
    }
    const second = validate(rough)
    return second instanceof Promise ? second.then(restored) : restored(second)
  }
  const first = validate(value)
  return first instanceof Promise ? first.then(again) : again(first)
}

/**
 * Validates the existing keys of an object with a schema; missing keys are not checked. As above, a number that a
 * double would alter passes if the nearest double does.
 */
export async function checkPart(schema: Schema, value: object): Promise<readonly SchemaIssue[]> {
  const found = await partIssues(schema, value, value)
  if (found.length === 0 || exactIn(value) === 0) return found
  const rough = new Set((await partIssues(schema, roughOf(value), value)).map(firstKey))
  return found.filter((issue) => rough.has(firstKey(issue)))
}

async function partIssues(schema: Schema, value: unknown, keys: object): Promise<readonly SchemaIssue[]> {
  const { issues = [] } = await schema['~standard'].validate(value)
  return issues.filter((issue) => {
    const key = firstKey(issue)
    return key === undefined || Object.hasOwn(keys, key)
  })
}

function firstKey({ path }: SchemaIssue): PropertyKey | undefined {
  const first = path?.[0]
  return typeof first === 'object' ? first.key : first
}

/** Type boundary: a value that has passed, with some of its numbers exact. */
function asOutput<Output>(value: unknown): Output {
  return value as Output
}

function isExact(value: unknown): boolean {
  return typeof value === 'bigint' || isExactNumber(value)
}

function exactIn(value: unknown): number {
  if (isExact(value)) return 1
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((sum: number, one: unknown) => sum + exactIn(one), 0)
}

function roughOf(value: unknown): unknown {
  if (isExact(value)) return Number(value)
  if (Array.isArray(value)) return value.map(roughOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, roughOf(one)]))
}

function restore(output: unknown, rough: unknown, exact: unknown, found: { count: number }): unknown {
  if (isExact(exact)) {
    if (!Object.is(output, rough)) return output
    found.count += 1
    return exact
  }
  if (!isHolder(output) || !isHolder(rough) || !isHolder(exact)) return output
  const part = (key: string): unknown => restore(output[key], rough[key], exact[key], found)
  if (Array.isArray(output)) return output.map((_, index) => part(String(index)))
  return Object.fromEntries(Object.keys(output).map((key) => [key, part(key)]))
}

function isHolder(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
