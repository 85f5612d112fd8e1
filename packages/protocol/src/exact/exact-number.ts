/** A decimal number as digits without zeros at either end, times a power of ten. Zero has no digits. */
interface Decimal {
  readonly isNegative: boolean
  readonly digits: string
  readonly exponent: number
}

const LITERAL = /^(?<minus>-?)(?<whole>0|[1-9]\d*)(?:\.(?<part>\d+))?(?:[eE](?<power>[+-]?\d+))?$/

/** Whether a text is a number as JSON writes it. */
export function isNumberText(text: string): boolean {
  return LITERAL.test(text)
}

const BRAND: unique symbol = Symbol.for('impresario.ExactNumber') as never

export function isExactNumber(value: unknown): value is ExactNumber {
  return typeof value === 'object' && value !== null && BRAND in value
}

/**
 * A number that neither a `number` nor a `bigint` of JavaScript can represent, such as 0.1000000000000000000001 or
 * 1e-400, with all of its digits. It is compared and passed on exactly; `Number(it)` is the nearest double.
 */
export class ExactNumber {
  /** Recognized by this property and not by its class: a package that is installed twice breaks `instanceof`. */
  readonly [BRAND] = true
  /** As JSON writes it. */
  readonly text: string

  constructor(text: string) {
    if (!isNumberText(text)) throw new TypeError(`${JSON.stringify(text)} is not a number as JSON writes it.`)
    this.text = text
    Object.freeze(this)
  }

  toString(): string {
    return this.text
  }

  /** The nearest double. */
  valueOf(): number {
    return Number(this.text)
  }

  /** For `JSON.stringify`, which could only round it. `stringifyExact` writes the number itself. */
  toJSON(): string {
    return this.text
  }
}

export type AnyNumber = number | bigint | ExactNumber

export function isAnyNumber(value: unknown): value is AnyNumber {
  return typeof value === 'number' || typeof value === 'bigint' || isExactNumber(value)
}

/**
 * Negative, zero or positive, as the first is less than, equal to or greater than the second. Exact for all of them.
 */
export function compareNumbers(a: AnyNumber, b: AnyNumber): number {
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0
  const [left, right] = [decimalOf(String(a)), decimalOf(String(b))]
  const sign = signOf(left)
  if (sign !== signOf(right)) return sign - signOf(right)
  if (sign === 0) return 0
  return sign < 0 ? compareSizes(right, left) : compareSizes(left, right)
}

function signOf({ isNegative, digits }: Decimal): number {
  return digits === '' ? 0 : isNegative ? -1 : 1
}

/**
 * By the position of the first digit, then digit by digit: never by expanding a power, which may have millions of
 * zeros.
 */
function compareSizes(a: Decimal, b: Decimal): number {
  const places = a.digits.length + a.exponent - (b.digits.length + b.exponent)
  if (places !== 0) return places < 0 ? -1 : 1
  const length = Math.max(a.digits.length, b.digits.length)
  const [left, right] = [a.digits.padEnd(length, '0'), b.digits.padEnd(length, '0')]
  return left < right ? -1 : left > right ? 1 : 0
}

function decimalOf(text: string): Decimal {
  const { minus, whole = '', part = '', power = '0' } = LITERAL.exec(text)?.groups ?? {}
  const all = (whole + part).replace(/^0+/, '')
  const digits = all.replace(/0+$/, '')
  return {
    isNegative: minus === '-',
    digits,
    exponent: digits === '' ? 0 : Number(power) - part.length + (all.length - digits.length),
  }
}

/** Every decimal of this many digits survives a conversion to a double and back. */
const SAFE_DIGITS = 15
const PRECISION_MAX = 100
/** Beyond it not even the position of the first digit could be counted. */
const POWER_MAX = 1_000_000_000

/** The JavaScript value for a number in JSON. `'overflow'`: there is no double near it. */
export function numberFrom(text: string): AnyNumber | 'overflow' {
  const { minus, part, power } = LITERAL.exec(text)?.groups ?? {}
  const number = Number(text)
  if (Math.abs(Number(power ?? 0)) > POWER_MAX) return 'overflow'
  if (!Number.isFinite(number)) {
    return power === undefined && part === undefined && minus !== undefined ? BigInt(text) : 'overflow'
  }
  if (power === undefined && part === undefined) {
    return Number.isSafeInteger(number) ? number : BigInt(text)
  }
  const given = decimalOf(text)
  if (given.digits.length <= SAFE_DIGITS && power === undefined) return number
  return isWrittenAs(number, given) ? number : new ExactNumber(text)
}

/** Whether these are the digits of a double: its shortest form, or a longer output of the same double. */
function isWrittenAs(number: number, given: Decimal): boolean {
  if (isSame(decimalOf(String(number)), given)) return true
  const count = given.digits.length
  if (number === 0 || count <= SAFE_DIGITS || count > PRECISION_MAX) return false
  return isSame(decimalOf(number.toPrecision(count)), given)
}

function isSame(a: Decimal, b: Decimal): boolean {
  return a.digits === b.digits && a.exponent === b.exponent
}
