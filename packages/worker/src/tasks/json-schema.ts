import { ImpresarioError, stringifyExact } from '@impresario/protocol'
import type { JsonObject, Schema, SchemaIssue } from '@impresario/protocol'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'

/**
 * A schema for contracts, skills and events, from a JSON Schema (draft 2020-12), for contracts that are shared with other
 * languages. A schema that cannot be used, or has a keyword that is not known, is refused here, so that nothing is believed to
 * be checked that is not. `format` and the other annotations say nothing about validity, as the standard has it.
 */
export function jsonSchema<T = unknown>(schema: JsonObject | boolean): Schema<T, T> {
  const check = compiled(schema)
  const validate = (value: unknown) => {
    const issues = issuesIn(check, value)
    return issues.length === 0 ? { value: valueOf<T>(value) } : { issues }
  }
  const described = { input: () => schema, output: () => schema }
  return { '~standard': standard<T>({ version: 1, vendor: 'impresario', validate, jsonSchema: described }) }
}

/** The boundaries: a value that has passed has the type that the caller gave the schema. */
function valueOf<T>(value: unknown): T {
  return value as T
}
function standard<T>(fields: object): Schema<T, T>['~standard'] {
  return fields as Schema<T, T>['~standard']
}

/** One for each schema: names in one cannot be those of another. The dialect is fixed, whatever `$schema` says. */
function compiled(schema: JsonObject | boolean): ValidateFunction {
  const ajv = new Ajv2020({
    strictSchema: true,
    strictTypes: false,
    strictTuples: false,
    strictRequired: false,
    allErrors: true,
    multipleOfPrecision: 9,
    validateFormats: false,
    logger: false,
  })
  if (ajv.getKeyword('$anchor') === false) ajv.addKeyword('$anchor')
  try {
    if (typeof schema === 'boolean') return ajv.compile(schema)
    const { $schema: _, $id: __, $async: ___, ...rest } = schema
    return ajv.compile(rest)
  } catch (error) {
    // Ajv calls the schema `data`.
    const why = (error instanceof Error ? error.message : String(error)).replaceAll('data/', '#/')
    throw new ImpresarioError('INVALID_CONFIGURATION', `The JSON Schema cannot be used: ${why}`)
  }
}

/** Held against what the value is as JSON: numbers are doubles there, and what JSON leaves out is not there. */
function issuesIn(check: ValidateFunction, value: unknown): readonly SchemaIssue[] {
  try {
    const text: string | undefined = stringifyExact(value)
    return check(text === undefined ? undefined : JSON.parse(text)) ? [] : (check.errors ?? []).map(issueOf)
  } catch (error) {
    const isTooDeep = error instanceof RangeError
    return [{ path: [], message: isTooDeep ? 'is nested too deeply' : 'cannot be written as JSON' }]
  }
}

/** What is missing, or too much, is named by its own path. */
function issueOf({ instancePath, keyword, params, message }: ErrorObject): SchemaIssue {
  const path = instancePath.split('/').slice(1).map(unescaped)
  const { missingProperty: missing, additionalProperty: extra } = params as Readonly<Record<string, unknown>>
  if (keyword === 'required' && typeof missing === 'string') return { path: [...path, missing], message: 'is missing' }
  if (typeof extra === 'string') return { path: [...path, extra], message: 'is not allowed' }
  return { path, message: message ?? 'does not fit its schema' }
}

function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
