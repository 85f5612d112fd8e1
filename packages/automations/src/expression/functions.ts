import { isAnyNumber, isEqual, isTrue, orderOf, stringifyExact } from '@impresario/protocol'
import { isoInstant, parseMoment, Zones } from '@impresario/recurrence'
import { textOf } from './values.ts'

/** An argument as a function sees it: a value, or an expression that it may run over each item. */
export interface Arg {
  readonly value: unknown
  /** Set when the argument was written as `&expression`. */
  readonly of: ((item: unknown) => unknown) | undefined
}

export interface FunctionOf {
  readonly argsMin: number
  readonly argsMax: number
  /** What it is for, for the reference. */
  readonly help: string
  run(args: readonly Arg[], fail: (problem: string) => never): unknown
}

const ZONES = new Zones()

function list(arg: Arg | undefined, fail: (problem: string) => never): readonly unknown[] {
  const value = arg?.value
  if (Array.isArray(value)) return value as readonly unknown[]
  return fail(`needs a list, not ${nameOf(value)}`)
}

function text(arg: Arg | undefined, fail: (problem: string) => never): string {
  const value = arg?.value
  return typeof value === 'string' ? value : fail(`needs text, not ${nameOf(value)}`)
}

function number(arg: Arg | undefined, fail: (problem: string) => never): number {
  const value = arg?.value
  return isAnyNumber(value) ? Number(value) : fail(`needs a number, not ${nameOf(value)}`)
}

function object(arg: Arg | undefined, fail: (problem: string) => never): object {
  const value = arg?.value
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  return fail(`needs an object, not ${nameOf(value)}`)
}

/** Half of a character cannot be encoded; it becomes the replacement character. */
function wellFormed(value: string): string {
  return value.replaceAll(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, '\uFFFD')
}

function numbers(arg: Arg | undefined, fail: (problem: string) => never): readonly number[] {
  return list(arg, fail).map((value) => number({ value, of: undefined }, fail))
}

function key(arg: Arg | undefined, fail: (problem: string) => never): (item: unknown) => unknown {
  return arg?.of ?? fail('needs an expression such as &name')
}

function moment(arg: Arg | undefined, fail: (problem: string) => never): number {
  const at = momentOf(arg?.value)
  return at ?? fail(`needs a time such as 2026-01-31T09:00:00Z, not ${nameOf(arg?.value)}`)
}

/** The instant that a value names, if it names one. */
export function momentOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || !/^\d{4}-\d{2}-\d{2}T.*(?:Z|[+-]\d{2}:?\d{2})$/i.test(value)) return undefined
  try {
    const found = parseMoment('time', value)
    return found.kind === 'instant' ? found.at : undefined
  } catch {
    return undefined
  }
}

export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (isAnyNumber(value)) return 'a number'
  if (typeof value === 'object') return 'durationMs' in value ? 'a duration' : 'an object'
  return typeof value === 'boolean' ? 'true or false' : 'text'
}

function sorted(
  items: readonly unknown[],
  by: (item: unknown) => unknown,
  fail: (problem: string) => never,
): unknown[] {
  return items.toSorted((a, b) => orderOf(by(a), by(b)) ?? fail('needs items that are all numbers or all text'))
}

function extreme(
  items: readonly unknown[],
  by: (item: unknown) => unknown,
  sign: 1 | -1,
  fail: (problem: string) => never,
): unknown {
  let best: unknown = null
  for (const [at, item] of items.entries()) {
    const order = at === 0 ? 1 : (orderOf(by(item), by(best)) ?? fail('needs items that are all numbers or all text'))
    if (at === 0 || order * sign > 0) best = item
  }
  return best
}

const itself = (item: unknown): unknown => item

function unique(items: readonly unknown[]): readonly unknown[] {
  const seen = new Set<string>()
  return items.filter((item) => {
    const mark = stringifyExact(item)
    if (seen.has(mark)) return false
    seen.add(mark)
    return true
  })
}

/** The time of day and the date in a zone, as `2026-01-31T09:00:00`. */
function local(at: number, zoneName: string, fail: (problem: string) => never): string {
  try {
    return isoInstant(ZONES.named(zoneName).localOf(at))
  } catch {
    return fail(`does not know the time zone "${zoneName}"`)
  }
}

function fn(argsMin: number, argsMax: number, help: string, run: FunctionOf['run']): FunctionOf {
  return { argsMin, argsMax, help, run }
}

/** All functions of the language. None of them has an effect, reads a clock, or takes longer than its input is long. */
export const FUNCTIONS: ReadonlyMap<string, FunctionOf> = new Map<string, FunctionOf>([
  [
    'length',
    fn(1, 1, 'Number of items, keys or characters.', ([a], fail) => {
      const value = a?.value
      if (typeof value === 'string') return value.replaceAll(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g, '_').length
      if (Array.isArray(value)) return value.length
      if (typeof value === 'object' && value !== null) return Object.keys(value).length
      return fail(`needs a list, an object or text, not ${nameOf(value)}`)
    }),
  ],
  ['keys', fn(1, 1, 'Keys of an object.', ([a], fail) => Object.keys(object(a, fail)))],
  ['values', fn(1, 1, 'Values of an object.', ([a], fail) => Object.values(object(a, fail)) as unknown[])],
  ['first', fn(1, 1, 'The first item.', ([a], fail) => list(a, fail)[0] ?? null)],
  ['last', fn(1, 1, 'The last item.', ([a], fail) => list(a, fail).at(-1) ?? null)],
  ['reverse', fn(1, 1, 'The list backwards.', ([a], fail) => list(a, fail).toReversed())],
  ['unique', fn(1, 1, 'The list without repetitions.', ([a], fail) => unique(list(a, fail)))],
  ['sort', fn(1, 1, 'The list in order.', ([a], fail) => sorted(list(a, fail), itself, fail))],
  [
    'sort_by',
    fn(2, 2, 'The list in the order of an expression: sort_by(items, &price).', ([a, b], fail) =>
      sorted(list(a, fail), key(b, fail), fail),
    ),
  ],
  [
    'max_by',
    fn(2, 2, 'The item with the largest value.', ([a, b], fail) => extreme(list(a, fail), key(b, fail), 1, fail)),
  ],
  [
    'min_by',
    fn(2, 2, 'The item with the smallest value.', ([a, b], fail) => extreme(list(a, fail), key(b, fail), -1, fail)),
  ],
  [
    'map',
    fn(2, 2, 'An expression over each item: map(&name, items).', ([a, b], fail) => list(b, fail).map(key(a, fail))),
  ],
  ['sum', fn(1, 1, 'Sum of numbers.', ([a], fail) => numbers(a, fail).reduce((x, y) => x + y, 0))],
  [
    'avg',
    fn(1, 1, 'Average of numbers; null for none.', ([a], fail) => {
      const all = numbers(a, fail)
      return all.length === 0 ? null : all.reduce((x, y) => x + y, 0) / all.length
    }),
  ],
  ['max', fn(1, 1, 'The largest item.', ([a], fail) => extreme(list(a, fail), itself, 1, fail))],
  ['min', fn(1, 1, 'The smallest item.', ([a], fail) => extreme(list(a, fail), itself, -1, fail))],
  ['abs', fn(1, 1, 'The number without its sign.', ([a], fail) => Math.abs(number(a, fail)))],
  ['ceil', fn(1, 1, 'The next whole number up.', ([a], fail) => Math.ceil(number(a, fail)))],
  ['floor', fn(1, 1, 'The next whole number down.', ([a], fail) => Math.floor(number(a, fail)))],
  [
    'round',
    fn(1, 2, 'The nearest number with so many decimals.', ([a, b], fail) => {
      const power = 10 ** (b === undefined ? 0 : Math.max(0, Math.min(12, number(b, fail))))
      return Math.round(number(a, fail) * power) / power
    }),
  ],
  [
    'join',
    fn(2, 2, 'Items as one text: join(", ", names).', ([a, b], fail) => list(b, fail).map(textOf).join(text(a, fail))),
  ],
  ['split', fn(2, 2, 'A text as a list: split(",", line).', ([a, b], fail) => text(b, fail).split(text(a, fail)))],
  ['upper', fn(1, 1, 'Upper case.', ([a], fail) => text(a, fail).toUpperCase())],
  ['lower', fn(1, 1, 'Lower case.', ([a], fail) => text(a, fail).toLowerCase())],
  ['trim', fn(1, 1, 'Without spaces at both ends.', ([a], fail) => text(a, fail).trim())],
  [
    'replace',
    fn(3, 3, 'Every occurrence replaced: replace(text, "a", "b").', ([a, b, c], fail) =>
      text(a, fail).replaceAll(text(b, fail), () => text(c, fail)),
    ),
  ],
  [
    'starts_with',
    fn(2, 2, 'Whether a text begins with another.', ([a, b], fail) => text(a, fail).startsWith(text(b, fail))),
  ],
  ['ends_with', fn(2, 2, 'Whether a text ends with another.', ([a, b], fail) => text(a, fail).endsWith(text(b, fail)))],
  [
    'contains',
    fn(2, 2, 'Whether a list has an item, or a text another text.', ([a, b], fail) =>
      typeof a?.value === 'string'
        ? a.value.includes(text(b, fail))
        : list(a, fail).some((item) => isEqual(item, b?.value)),
    ),
  ],
  [
    'url_encode',
    fn(1, 1, 'Text for a part of an address.', ([a], fail) => encodeURIComponent(wellFormed(text(a, fail)))),
  ],
  ['to_string', fn(1, 1, 'Any value as text.', ([a]) => textOf(a?.value))],
  [
    'to_number',
    fn(1, 1, 'Text as a number; null when it is none.', ([a]) => {
      const value = a?.value
      if (isAnyNumber(value)) return value
      const found = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN
      return Number.isFinite(found) ? found : null
    }),
  ],
  ['to_json', fn(1, 1, 'Any value as JSON text.', ([a]) => stringifyExact(a?.value ?? null))],
  [
    'from_json',
    fn(1, 1, 'The value of JSON text.', ([a], fail) => {
      try {
        return JSON.parse(text(a, fail)) as unknown
      } catch {
        return fail('needs valid JSON')
      }
    }),
  ],
  [
    'type',
    fn(1, 1, 'The kind of a value.', ([a]) => {
      const value = a?.value
      if (value === null || value === undefined) return 'null'
      if (Array.isArray(value)) return 'array'
      return isAnyNumber(value) ? 'number' : typeof value
    }),
  ],
  ['default', fn(2, 2, 'The second value when the first is missing or null.', ([a, b]) => a?.value ?? b?.value)],
  [
    'not_null',
    fn(
      1,
      10,
      'The first value that is not null.',
      (args) => args.find((arg) => (arg.value ?? null) !== null)?.value ?? null,
    ),
  ],
  [
    'if',
    fn(3, 3, 'One of two values: if(condition, then, else).', ([a, b, c]) => (isTrue(a?.value) ? b?.value : c?.value)),
  ],
  [
    'merge',
    fn(1, 10, 'Objects as one; later keys win.', (args, fail) =>
      Object.fromEntries(
        args.flatMap(({ value }) =>
          typeof value === 'object' && value !== null && !Array.isArray(value)
            ? Object.entries(value)
            : fail('needs objects'),
        ),
      ),
    ),
  ],
  [
    'date',
    fn(1, 2, 'The date, in a time zone: date(now, "Europe/Berlin").', ([a, b], fail) =>
      local(moment(a, fail), b === undefined ? 'UTC' : text(b, fail), fail).slice(0, 10),
    ),
  ],
  [
    'time',
    fn(1, 2, 'The time of day, in a time zone.', ([a, b], fail) =>
      local(moment(a, fail), b === undefined ? 'UTC' : text(b, fail), fail).slice(11, 19),
    ),
  ],
  ['unix', fn(1, 1, 'A time as seconds since 1970.', ([a], fail) => moment(a, fail) / 1_000)],
  [
    'seconds_between',
    fn(2, 2, 'Seconds from one time to another.', ([a, b], fail) => (moment(b, fail) - moment(a, fail)) / 1_000),
  ],
])
