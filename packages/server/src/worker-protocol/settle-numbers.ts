import { doubleOf, isJsonObject } from '@impresario/protocol'

/**
 * Goes through a body along its schema, and makes plain numbers of those that are kept as texts where the schema asks for a
 * number: priorities, timeouts and the like are measured, not kept. Where it asks for a text a number is none. Data, of
 * which the schema says nothing, stays exact. Changes the body; gives what is wrong with it.
 */
export function settleNumbers(schema: unknown, body: unknown): string | undefined {
  const holder = { body }
  return settle(schema, holder, 'body', 'body')
}

type Holder = Record<string, unknown>

function settle(schema: unknown, holder: Holder, key: string, path: string): string | undefined {
  if (!isSchema(schema)) return undefined
  const value = holder[key]
  if (typeof value === 'string') return settleText(schema, holder, key, path)
  if (typeof value !== 'object' || value === null) return undefined
  for (const one of [...listOf(schema['anyOf']), ...listOf(schema['oneOf']), ...listOf(schema['allOf'])]) {
    const problem = settle(one, holder, key, path)
    if (problem !== undefined) return problem
  }
  const { properties, additionalProperties, items } = schema
  for (const name of Object.keys(value)) {
    const own = isSchema(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    const problem = settle(Array.isArray(value) ? items : own, value as Holder, name, `${path}/${name}`)
    if (problem !== undefined) return problem
  }
  return undefined
}

function settleText(schema: Holder, holder: Holder, key: string, path: string): string | undefined {
  const number = doubleOf(holder[key])
  if (number === undefined) return undefined
  const types = typesOf(schema)
  if (types.has('number') || types.has('integer')) {
    if (!Number.isFinite(number)) return `${path} is beyond the range of numbers`
    holder[key] = number
    return undefined
  }
  return types.has('string') ? `${path} must be string` : undefined
}

/** All types that a schema allows, at any of its alternatives. */
function typesOf(schema: unknown): ReadonlySet<unknown> {
  if (!isSchema(schema)) return new Set()
  const alternatives = [...listOf(schema['anyOf']), ...listOf(schema['oneOf'])]
  return new Set([...[schema['type']].flat(), ...alternatives.flatMap((one) => [...typesOf(one)])])
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function isSchema(value: unknown): value is Holder {
  return isJsonObject(value)
}
