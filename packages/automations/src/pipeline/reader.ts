import type { Data, DataObject } from '@impresario/protocol'
import type { Problems } from './problem.ts'

/** Reads the fields of one object, and tells of each that is missing, unknown or of the wrong kind. */
export class FieldReader {
  readonly #value: Readonly<Record<string, Data>>
  readonly #path: string
  readonly #problems: Problems
  readonly #known = new Set<string>()
  readonly #refused = new Set<string>()
  /** Set as soon as it is known, so that later problems name it. */
  step: string | undefined

  constructor(value: Readonly<Record<string, Data>>, path: string, problems: Problems) {
    this.#value = value
    this.#path = path
    this.#problems = problems
  }

  path(key: string): string {
    return this.#path === '' ? key : `${this.#path}.${key}`
  }

  /** One problem is told of a field: what is of the wrong kind is not missing too. */
  refuse(key: string, message: string): undefined {
    if (this.#refused.has(key)) return undefined
    this.#refused.add(key)
    this.#problems.add(this.path(key), message, this.step)
    return undefined
  }

  has(key: string): boolean {
    this.#known.add(key)
    return this.#value[key] !== undefined && this.#value[key] !== null
  }

  raw(key: string): Data | undefined {
    this.#known.add(key)
    return this.#value[key] ?? undefined
  }

  text(key: string, { max }: { readonly max: number }): string | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    if (typeof value !== 'string' || value.trim() === '') return this.refuse(key, 'Must be text that is not empty.')
    if (value.length > max) return this.refuse(key, `Must have at most ${max} characters; it has ${value.length}.`)
    return value
  }

  number(
    key: string,
    { min, max, isWhole = false }: { min: number; max: number; isWhole?: boolean },
  ): number | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    if (typeof value !== 'number' || value < min || value > max || (isWhole && !Number.isInteger(value))) {
      return this.refuse(key, `Must be a ${isWhole ? 'whole ' : ''}number from ${min} to ${max}.`)
    }
    return value
  }

  oneOf<const T extends string>(key: string, allowed: readonly T[]): T | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    const found = allowed.find((each) => each === value)
    return found ?? this.refuse(key, `Must be one of ${allowed.join(', ')}.`)
  }

  object(key: string): DataObject | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    return isObject(value) ? value : this.refuse(key, 'Must be an object.')
  }

  list(key: string): readonly Data[] | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    return Array.isArray(value) ? (value as readonly Data[]) : this.refuse(key, 'Must be a list.')
  }

  /** Refuses every field that was not asked for. */
  end(): void {
    for (const key of Object.keys(this.#value)) {
      if (!this.#known.has(key)) this.refuse(key, `There is no such field. Known: ${[...this.#known].join(', ')}.`)
    }
  }
}

export function isObject(value: unknown): value is DataObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
