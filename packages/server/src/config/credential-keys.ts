import { readJson, stringifyExact } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { invalid } from './config.ts'

/**
 * Refuses a key that is nearly one of the known ones. A misspelt `role` or `monthly_attempts` would otherwise be taken
 * for something else, and its owner would have more rights than the file seems to say.
 */
export function refuseMisspelt(at: string, keys: readonly string[], known: ReadonlySet<string>, orElse = ''): void {
  for (const key of keys) {
    const meant = [...known].find((word) => isNear(key.toLowerCase(), word))
    if (meant === undefined) continue
    const other = orElse === '' ? '' : `, ${orElse}`
    throw invalid(`${at}.${key} is not known. Did you mean ${meant}? Write ${meant} instead${other}.`)
  }
}

/** Short words are near when one letter differs, longer ones when two do. */
function isNear(a: string, b: string): boolean {
  const most = Math.min(a.length, b.length) > 4 ? 2 : 1
  return Math.abs(a.length - b.length) <= most && editsBetween(a, b) <= most
}

/** How many letters to put in, take out or change. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** A table of TOML. */
export type Table = Readonly<Record<string, unknown>>

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** Dates of TOML become what JSON has for them; large numbers keep their digits. */
export function tomlJson(table: Table): JsonObject {
  return readJson(stringifyExact(table)) as JsonObject
}
