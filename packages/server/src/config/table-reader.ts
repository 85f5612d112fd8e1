import { nearWord } from '@impresario/core'
import { LIMITS, readJson, stringifyExact } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { invalid, parseFile } from './config.ts'

/**
 * Refuses a key that is nearly one of the known ones. A misspelt `role` or `monthly_attempts` would otherwise be taken
 * for something else, and its owner would have more rights than the file seems to say.
 */
export function refuseMisspelt(at: string, keys: readonly string[], known: ReadonlySet<string>, orElse = ''): void {
  for (const key of keys) {
    const meant = nearWord(key.toLowerCase(), known)
    if (meant === undefined) continue
    const other = orElse === '' ? '' : `, ${orElse}`
    throw invalid(`${at}.${key} is not known. Did you mean ${meant}? Write ${meant} instead${other}.`)
  }
}

/** A table of TOML. */
export type Table = Readonly<Record<string, unknown>>

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** Dates of TOML become what JSON has for them; large numbers keep their digits. */
export function tomlJson(table: Table): JsonObject {
  return readJson(stringifyExact(table)) as JsonObject
}

/** The tables of a file, by name. `example` is the name of a table in messages. */
export function* tablesIn(path: string, example: string): Generator<readonly [string, Table]> {
  for (const [name, table] of Object.entries(parseFile(path))) {
    if (!isTable(table)) {
      throw invalid(`${path}: ${name} is outside of a table. Begin the file with a table such as [${example}].`)
    }
    if (name === '' || name.length > LIMITS.identifierCharsMax) {
      throw invalid(`${path}: [${name.slice(0, 32)}] must have a name of 1 to ${LIMITS.identifierCharsMax} characters.`)
    }
    yield [name, table]
  }
}

/** One table of the file. Everything that it refuses is named with file, table and key. */
export class TableReader {
  readonly #at: string
  readonly #table: Table

  /** `at`: the file and the table, such as `clients.toml: [shop]`. */
  constructor(at: string, table: Table) {
    this.#at = at
    this.#table = table
  }

  refusal(key: string | undefined, what: string): Error {
    return invalid(`${this.#at}${key === undefined ? '' : `.${key}`} ${what}`)
  }

  /** `what`: the thing that the table describes, such as `A schedule`. */
  refuseUnknown(known: ReadonlySet<string>, what: string): void {
    const unknown = Object.keys(this.#table).filter((key) => !known.has(key))
    refuseMisspelt(this.#at, unknown, known)
    const [first] = unknown
    if (first !== undefined) throw this.refusal(first, `is not known. ${what} has ${[...known].join(', ')}.`)
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#table, key)
  }

  text(key: string, { mayBeEmpty = false } = {}): string | undefined {
    if (!this.has(key)) return undefined
    const value = this.#table[key]
    if (typeof value === 'string' && (mayBeEmpty || value.trim() !== '')) return value
    throw this.refusal(key, mayBeEmpty ? 'must be a text.' : 'must be a text that is not empty.')
  }

  required(key: string, what: string): string {
    const value = this.text(key)
    if (value === undefined) throw this.refusal(key, `is missing. It is ${what}.`)
    return value
  }

  flag(key: string): boolean | undefined {
    const value = this.#table[key]
    if (value === undefined || typeof value === 'boolean') return value
    throw this.refusal(key, 'must be true or false, without quotes.')
  }

  number(key: string, { min, max, isWhole }: { min: number; max: number; isWhole?: boolean }): number | undefined {
    const value = this.#table[key]
    if (value === undefined) return undefined
    const isGood = typeof value === 'number' && value >= min && value <= max
    if (isGood && (isWhole !== true || Number.isInteger(value))) return value
    throw this.refusal(key, `must be a ${isWhole === true ? 'whole ' : ''}number from ${min} to ${max}.`)
  }

  choice<T extends string>(key: string, of: readonly T[]): T | undefined {
    const value = this.#table[key]
    if (value === undefined) return undefined
    const found = of.find((one) => one === value)
    if (found === undefined) throw this.refusal(key, `must be one of ${of.map((one) => `"${one}"`).join(', ')}.`)
    return found
  }

  table(key: string): Table | undefined {
    const value = this.#table[key]
    if (value === undefined || isTable(value)) return value
    throw this.refusal(key, 'must be a table, such as { name = "value" }.')
  }

  list<T>(key: string, read: (value: unknown) => T | undefined, what: string): readonly T[] {
    const values = this.#table[key]
    if (!Array.isArray(values) || values.length === 0) throw this.refusal(key, `must be a list of ${what}.`)
    const found = values.map((value: unknown) => {
      const one = read(value)
      if (one === undefined) throw this.refusal(key, `holds ${JSON.stringify(value)}. It must be a list of ${what}.`)
      return one
    })
    return [...new Set(found)]
  }

  /** `HH:MM`, as minutes since midnight. */
  time(key: string): number {
    if (this.#table[key] instanceof Date) throw this.refusal(key, 'must be a time in quotes, such as "07:30".')
    const value = this.required(key, 'a time such as "07:30"')
    const [, hours, minutes] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(value) ?? []
    if (hours === undefined || minutes === undefined) {
      throw this.refusal(key, `is "${value}". It must be a time from "00:00" to "23:59".`)
    }
    return Number(hours) * 60 + Number(minutes)
  }
}
