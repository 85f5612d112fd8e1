import { readFile } from 'node:fs/promises'
import { text as textOf } from 'node:stream/consumers'
import { parseExact } from '@impresario/client/light'
import type { DataObject } from '@impresario/client'
import { InvalidArgumentError } from 'commander'
import { usage } from './failure.ts'

type JsonData = DataObject

/* How words of the command line become values. What commander calls throws its error, so that it names the option. */

export function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('It must be a number.')
  return value
}

export function count(text: string): number {
  const value = number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It must be 1 or more.')
  return value
}

/** Like a count, but none is allowed. */
export function amount(text: string): number {
  const value = number(text)
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError('It must be 0 or more.')
  return value
}

export function port(text: string): number {
  const value = number(text)
  if (Number.isInteger(value) && value >= 0 && value <= 65_535) return value
  throw new InvalidArgumentError('It goes from 0 to 65535.')
}

const UNITS_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** A span such as `90s`, `30m`, `2h`, `7d`, in milliseconds. A bare 0 needs no unit. */
export function spanMs(text: string): number {
  const ms = spanIn(text)
  if (ms === undefined) throw new InvalidArgumentError('It is a number with s, m, h, d or w, such as 30m.')
  return ms
}

function spanIn(text: string): number | undefined {
  if (text === '0') return 0
  const [, digits = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)([a-z]+)$/.exec(text.trim()) ?? []
  const unitMs = UNITS_MS[unit]
  return unitMs === undefined ? undefined : Number(digits) * unitMs
}

/** So long ago, or a date; a time without an offset is that of this machine. */
export function moment(text: string): Date {
  const ms = spanIn(text)
  if (ms !== undefined) return new Date(Date.now() - ms)
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? new Date(text) : new Date(Number.NaN)
  if (!Number.isNaN(at.getTime())) return at
  throw new InvalidArgumentError('It is a span such as 2h, or a date such as 2026-01-31 or 2026-01-31T12:00.')
}

/** A JSON object: on the command line, from a file as `@file`, or from standard input as `-`. */
export async function readData(option: string, given: string): Promise<JsonData> {
  const json = await dataText(option, given)
  try {
    return dataObject(parseExact(json))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw usage(`${option} is not a JSON object: ${reason}`, `For example: ${option} '{"title": "First light"}'`)
  }
}

async function dataText(option: string, given: string): Promise<string> {
  if (given === '-') return textOf(process.stdin)
  if (!given.startsWith('@')) return given
  return readFile(given.slice(1), 'utf8').catch((error: unknown) => {
    throw usage(`${option} cannot be read from "${given.slice(1)}": ${whyUnread(error)}.`)
  })
}

/** Boundary: what a parser has made is JSON. */
export function dataObject(value: unknown): JsonData {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('it is something else')
  return value as JsonData
}

/** How YAML is read: whole numbers exactly, and `<<` adds what an anchor has. */
export const YAML_RULES = { intAsBigInt: true, merge: true } as const

/** Whole numbers are read exactly; those that a number can hold become one. */
export function withNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') return BigInt(Number(value)) === value ? Number(value) : value
  if (Array.isArray(value)) return value.map(withNumbers)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]: [string, unknown]) => [key, withNumbers(one)]))
}

/** Why a file cannot be read, in words. */
export function whyUnread(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return REASONS.get(code) ?? (error instanceof Error ? error.message : String(error))
}

const REASONS = new Map([
  ['ENOENT', 'there is no such file'],
  ['EISDIR', 'it is a directory'],
  ['EACCES', 'you may not read it'],
])
