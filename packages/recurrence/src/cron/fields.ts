import { quoted, refusal } from '../refusal.ts'

/** What one field of a cron expression may contain. */
export interface FieldShape {
  /** Its name in messages. */
  readonly name: string
  readonly min: number
  readonly max: number
  readonly names?: Readonly<Record<string, number>>
  /** Takes the items that are neither numbers nor ranges, such as `L`; returns whether it recognized this one. */
  readonly special?: (item: string) => boolean
}

export interface Field {
  /** All values that match, in ascending order. */
  readonly values: readonly number[]
  /**
   * Whether it begins with `*` or is `?`: it does not restrict days, and such an hour field follows real time across
   * clock changes.
   */
  readonly isOpen: boolean
}

/** Reads one field: a list of values, ranges and steps. */
export function parseField(shape: FieldShape, text: string): Field {
  const values = new Set<number>()
  for (const item of text.split(',')) {
    if (item === '') throw wrong(shape, text, 'there is nothing between two commas')
    if (shape.special?.(item.toUpperCase()) === true) continue
    for (const value of valuesOf(shape, item)) values.add(value)
  }
  return { values: [...values].sort((a, b) => a - b), isOpen: text.startsWith('*') || text === '?' }
}

function valuesOf(shape: FieldShape, item: string): readonly number[] {
  const [range = '', step, ...more] = item.split('/')
  if (more.length > 0) throw wrong(shape, item, 'it has more than one "/"')
  const stride = step === undefined ? 1 : strideOf(shape, item, step)
  const { from, to } = boundsOf(shape, item, range, step !== undefined)
  const values: number[] = []
  for (let value = from; value <= to; value += stride) values.push(value)
  return values
}

function strideOf(shape: FieldShape, item: string, step: string): number {
  if (!/^\d{1,4}$/.test(step)) throw wrong(shape, item, 'a step is a whole number behind "/", as in */15')
  if (Number(step) === 0) throw wrong(shape, item, 'a step of 0 never goes on')
  return Number(step)
}

function boundsOf(shape: FieldShape, item: string, range: string, hasStep: boolean): { from: number; to: number } {
  if (range === '*') return { from: shape.min, to: shape.max }
  const [first = '', second, ...more] = range.split('-')
  if (more.length > 0) throw wrong(shape, item, 'a range has two ends')
  const from = valueOf(shape, item, first)
  // `5/20` begins at 5 and goes to the end.
  if (second === undefined) return { from, to: hasStep ? shape.max : from }
  const to = valueOf(shape, item, second)
  // Sunday is 0 and 7: at the end of a range it is the end of the week.
  const end = shape.max === 7 && to === 0 && from > 0 && /^sun$/i.test(second) ? 7 : to
  if (from > end) {
    throw wrong(shape, item, `a range goes upwards; write two, as in ${first}-${shape.max},${shape.min}-${second}`)
  }
  return { from, to: end }
}

function valueOf(shape: FieldShape, item: string, text: string): number {
  const named = shape.names?.[text.toLowerCase()]
  if (named !== undefined) return named
  if (!/^\d{1,4}$/.test(text)) throw wrong(shape, item, `${quoted(text)} is ${expectation(shape)}`)
  const value = Number(text)
  if (value < shape.min || value > shape.max) throw wrong(shape, item, `${value} is not in ${shape.min}–${shape.max}`)
  return value
}

function expectation(shape: FieldShape): string {
  if (shape.names === undefined) return 'no whole number'
  const [first, second] = Object.keys(shape.names)
  return `neither a number nor a name such as ${first?.toUpperCase()} or ${second?.toUpperCase()}`
}

/** A refusal that names the field and what is wrong with it. */
export function wrong({ name }: Pick<FieldShape, 'name'>, text: string, reason: string): Error {
  return refusal(
    `cron.${name.replaceAll(' ', '_')}`,
    `The ${name} ${quoted(text)} of the cron expression is wrong: ${reason}.`,
  )
}
