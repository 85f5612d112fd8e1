import type { Json } from '../json.ts'
import { isExactNumber, numberFrom } from './exact-number.ts'
import type { AnyNumber } from './exact-number.ts'
import { exactText, isMarkedNumber, MARK, markedText, plainText, unmarkedText } from './exact-text.ts'

/**
 * JSON values as handlers, workers and clients see them: numbers as `number`, integers beyond 2^53 as `bigint`, and
 * decimals that no double can represent as `ExactNumber`.
 */
export type Data = string | boolean | null | AnyNumber | readonly Data[] | DataObject
export interface DataObject {
  readonly [key: string]: Data
}

/** Parses JSON into the stored form. */
export function readJson(text: string): Json {
  return JSON.parse(exactText(text)) as Json
}

/** Writes the stored form as JSON. The only way out for all data that clients and workers sent. */
export function writeJson(value: unknown): string {
  return plainText(JSON.stringify(value))
}

/** The number that a stored text represents; `undefined` for all other values, including plain numbers. */
export function keptNumberIn(value: unknown): AnyNumber | undefined {
  if (typeof value !== 'string' || !value.startsWith(MARK) || !isMarkedNumber(value)) return undefined
  const number = numberFrom(value.slice(1))
  return number === 'overflow' ? undefined : number
}

/** The stored form of a number: itself, or a text that represents it. Refuses numbers that JSON cannot represent. */
export function keptNumber(given: AnyNumber): number | string {
  const number = typeof given === 'number' ? given : numberFrom(String(given))
  if (Object.is(number, -0)) return `${MARK}-0`
  if (typeof number !== 'number') {
    if (number !== 'overflow') return MARK + String(number)
  } else if (Number.isFinite(number)) {
    return number
  }
  throw new TypeError(`${String(given)} is no number that JSON can hold. Give a finite number or null.`)
}

/** A stored scalar, as its users see it. */
export function seenText(text: string): string | AnyNumber {
  return text.startsWith(MARK) ? (keptNumberIn(text) ?? unmarkedText(text)) : text
}

/** The nearest double of a plain or a stored number; `undefined` for all other values. For measurements only. */
export function doubleOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  const number = keptNumberIn(value)
  return number === undefined ? undefined : Number(number)
}

/** A copy of a stored value, as its users see it. */
export function dataOf(value: Json): Data {
  return copied(value, seenText)
}

/** A copy of a stored value in which every number is a double, for validators that do not keep it. */
export function roughCopy(value: Json): Json {
  return copied(value, (text) => {
    const seen = seenText(text)
    return typeof seen === 'string' ? seen : Number(seen)
  }) as Json
}

function copied(value: Json, seen: (text: string) => Data): Data {
  if (typeof value === 'string') return seen(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one: Json) => copied(one, seen))
  return Object.fromEntries(Object.entries(value).map(([key, one]: [string, Json]) => [key, copied(one, seen)]))
}

/** Like `JSON.parse`, but no number is altered: see `Data`. */
export function parseExact(text: string): Data {
  const exact = exactText(text)
  const value = JSON.parse(exact) as Json
  return exact === text ? value : dataOf(value)
}

/**
 * Like `JSON.stringify`, but also accepts `bigint` and `ExactNumber`. NaN and Infinity are refused with a `TypeError`,
 * where `JSON.stringify` would write `null`.
 */
export function stringifyExact(value: unknown, indent?: number): string {
  if (!needsCare(value)) return JSON.stringify(value, undefined, indent)
  return plainText(JSON.stringify(value, keptPart, indent))
}

/** A replacer receives a value after its `toJSON`; the number itself is still in its holder. */
function keptPart(this: unknown, key: string, value: unknown): unknown {
  const original = (this as Readonly<Record<string, unknown>>)[key]
  if (isExactNumber(original)) return keptNumber(original)
  if (typeof value === 'bigint' || typeof value === 'number') return keptNumber(value)
  return typeof value === 'string' ? markedText(value) : value
}

/** Most values are plain, and a replacer makes writing them four times as slow. */
function needsCare(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return value.startsWith(MARK)
    case 'number':
      return !Number.isFinite(value) || Object.is(value, -0)
    case 'bigint':
      return true
    case 'object':
      if (value === null) return false
      if (Array.isArray(value)) return value.some(needsCare)
      if (isExactNumber(value) || 'toJSON' in value) return true
      for (const key in value) if (needsCare((value as Readonly<Record<string, unknown>>)[key])) return true
      return false
    default:
      return false
  }
}
