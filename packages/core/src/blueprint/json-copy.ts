import {
  ImpresarioError,
  isExactNumber,
  keptNumber,
  LIMITS,
  markedText,
  numberFrom,
  seenText,
  utf8Bytes,
} from '@impresario/protocol'
import type { Data, ExactNumber, Json, JsonObject } from '@impresario/protocol'

/** Where a copy stands: the objects around it, innermost first. Its words are made only for a refusal. */
interface Path {
  readonly up: Path | undefined
  readonly key: string | number | undefined
  readonly object: object
  readonly depth: number
}

/**
 * Copies a value that user code made, so that nothing outside holds a part of a stored job, and
 * refuses what JSON cannot carry. `place` names the value in the refusal, such as `params`.
 *
 * Properties that are `undefined` are left out, as `JSON.stringify` would. Numbers that a double would alter are kept as
 * texts; `storedCopy` makes them what they were.
 */
export function jsonCopy(value: unknown, place: string): Json {
  return copy(value, place, undefined, undefined)
}

export function jsonObjectCopy(value: unknown, place: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refusal(place, `is ${nameOf(value)}`, 'Give an object.')
  }
  return copyObject(value, place, undefined, undefined)
}

/** Copies what is known to be JSON, because it was stored, for user code. Runs for every turn, so it checks nothing. */
export function storedCopy<T extends Json>(value: T): T {
  return cloned(value) as T
}

function cloned(value: Json): Data {
  if (typeof value === 'string') return seenText(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(cloned)
  const made: Record<string, Data> = {}
  for (const key of Object.keys(value)) setOwn(made, key, cloned((value as JsonObject)[key] as Json))
  return made
}

function setOwn<T>(made: Record<string, T>, key: string, item: T): void {
  if (key !== '__proto__') {
    made[key] = item
    return
  }
  // An assignment would change the prototype instead of storing the key.
  Object.defineProperty(made, key, { value: item, enumerable: true, configurable: true, writable: true })
}

function copy(value: unknown, place: string, key: string | number | undefined, path: Path | undefined): Json {
  switch (typeof value) {
    case 'string':
      return markedText(value)
    case 'boolean':
      return value
    case 'bigint':
      return keptLarge(value, place, key, path)
    case 'number':
      if (Number.isFinite(value)) return keptNumber(value)
      throw refusal(spell(place, key, path), `is ${value}, which JSON cannot hold`, 'Give a finite number or null.')
    case 'object':
      if (value === null) return null
      if (isExactNumber(value)) return keptLarge(value, place, key, path)
      return Array.isArray(value) ? copyList(value, place, key, path) : copyObject(value, place, key, path)
    default:
      throw refusal(spell(place, key, path), `is ${nameOf(value)}, which JSON cannot hold`, 'Give only plain data.')
  }
}

function keptLarge(
  value: bigint | ExactNumber,
  place: string,
  key: string | number | undefined,
  path: Path | undefined,
): Json {
  const text = String(value)
  if (text.length > LIMITS.jsonNumberCharsMax) {
    const problem = `is a number of more than ${LIMITS.jsonNumberCharsMax} digits`
    throw refusal(spell(place, key, path), problem, 'Give it as a text.')
  }
  if (numberFrom(text) !== 'overflow') return keptNumber(value)
  throw refusal(spell(place, key, path), `is ${text}, which is beyond the range of numbers`, 'Give a smaller number.')
}

function copyList(
  list: readonly unknown[],
  place: string,
  key: string | number | undefined,
  path: Path | undefined,
): Json {
  const inside = enter(list, place, key, path)
  // `Array.from` also visits holes, which `map` would keep.
  return Array.from(list, (item, index) => copy(item, place, index, inside))
}

function copyObject(
  object: object,
  place: string,
  key: string | number | undefined,
  path: Path | undefined,
): JsonObject {
  if (!isPlain(object)) {
    const problem = `is ${nameOf(object)}, not plain data`
    throw refusal(spell(place, key, path), problem, 'Convert it first, a Date with toISOString().')
  }
  const inside = enter(object, place, key, path)
  const made: Record<string, Json> = {}
  for (const [name, item] of Object.entries(object)) {
    if (item !== undefined) setOwn(made, name, copy(item, place, name, inside))
  }
  return made
}

/** A cycle is deeper than every limit, so it is looked for only there. */
function enter(object: object, place: string, key: string | number | undefined, up: Path | undefined): Path {
  const depth = up === undefined ? 1 : up.depth + 1
  if (depth > LIMITS.jsonDepthMax) throw tooDeep(place, { up, key, object, depth })
  return { up, key, object, depth }
}

function tooDeep(place: string, deepest: Path): ImpresarioError {
  const outer = new Map<object, Path>()
  for (const step of stepsTo(deepest)) {
    if (outer.has(step.object)) {
      return refusal(
        spell(place, step.key, step.up),
        'leads back to itself',
        'JSON holds no cycles: copy the part you need.',
      )
    }
    outer.set(step.object, step)
  }
  return refusal(
    spell(place, deepest.key, deepest.up),
    `is nested deeper than ${LIMITS.jsonDepthMax} levels`,
    'Flatten it.',
  )
}

/** From the outermost object to this one. */
function stepsTo(path: Path | undefined): Path[] {
  const steps: Path[] = []
  for (let step = path; step !== undefined; step = step.up) steps.push(step)
  return steps.toReversed()
}

function spell(place: string, key: string | number | undefined, path: Path | undefined): string {
  const keys = [...stepsTo(path).map((step) => step.key), key].filter((one) => one !== undefined)
  return place + keys.map((one) => (typeof one === 'number' ? `[${one}]` : `.${one}`)).join('')
}

/** True for literals, also those of another realm; false for instances of classes. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object)
  return prototype === null || (typeof prototype === 'object' && Object.getPrototypeOf(prototype) === null)
}

function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'a list'
  if (typeof value !== 'object') return `a ${typeof value}`
  return `an instance of ${value.constructor.name}`
}

function refusal(place: string, problem: string, fix: string): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', `${place} ${problem}. ${fix}`)
}

/** Bytes of the value as JSON. */
export function jsonSize(value: Json): number {
  return utf8Bytes(JSON.stringify(value))
}
