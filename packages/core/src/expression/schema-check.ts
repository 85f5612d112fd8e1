import { compareNumbers, isAnyNumber, snakeName } from '@impresario/protocol'
import type { Expression, Key } from './parser.ts'
import { itemsOf, keysOf, shapeAt, shapeOf, variantOf } from './shape.ts'
import type { Shape, Variant } from './shape.ts'

/**
 * What is wrong with an expression, as far as a JSON Schema of what it reads tells: paths that are never there, and comparisons
 * that come out the same for every value. Each is a sentence with the fix. What the schema leaves open passes, and so does every
 * comparison with `null`: that is how a condition looks for what jobs of an older version may lack.
 */
export function schemaProblems(expression: Expression, schema: unknown): readonly string[] {
  const problems: string[] = []
  shapeIn(expression, { root: shapeOf(schema), problems })
  return problems
}

interface Visitor {
  readonly root: Shape
  readonly problems: string[]
}

const BOOLEAN: Shape = [{ kind: 'boolean' }]

/** What an expression can be. Leaves the problems of all its parts with the visitor. */
function shapeIn(expression: Expression, visitor: Visitor): Shape {
  switch (expression.kind) {
    case 'literal':
      return [variantOf(expression.value)]
    case 'path':
      return shapeOfPath(expression.keys, visitor)
    case 'list':
      for (const item of expression.items) shapeIn(item, visitor)
      return [{ kind: 'array', schema: {} }]
    case 'not':
      shapeIn(expression.operand, visitor)
      return BOOLEAN
    case 'compare':
      visitor.problems.push(...compareProblems(expression, visitor))
      return BOOLEAN
    default:
      shapeIn(expression.left, visitor)
      shapeIn(expression.right, visitor)
      return BOOLEAN
  }
}

const KEYS_SHOWN_MAX = 12

function shapeOfPath(keys: readonly Key[], { root, problems }: Visitor): Shape {
  let shape = root
  for (const [depth, key] of keys.entries()) {
    if (shape === 'anything') return shape
    const next = shapeAt(shape, key)
    if (next === undefined) {
      const known = [...new Set(keysOf(shape))].slice(0, KEYS_SHOWN_MAX)
      const has = known.length === 0 ? 'nothing below it' : `only ${known.join(', ')}`
      problems.push(
        `it reads ${shown(keys.slice(0, depth + 1))}, which is never there: ${shown(keys.slice(0, depth))} has ${has}. ` +
          'Correct the path, or add it to the schema',
      )
      return 'anything'
    }
    shape = next
  }
  return shape
}

/** As the guide writes paths. */
function shown(keys: readonly Key[]): string {
  const words = keys.map((key, depth) => {
    if (typeof key === 'number') return `[${key}]`
    return depth === 1 ? snakeName(key) : key
  })
  return words.join('.').replaceAll('.[', '[')
}

type Compared = Extract<Expression, { readonly kind: 'compare' }>

function compareProblems({ operator, left, right }: Compared, visitor: Visitor): readonly string[] {
  const one = shapeIn(left, visitor)
  const other = shapeIn(right, visitor)
  if (one === 'anything') return []
  switch (operator) {
    case '==':
    case '!=':
      if (isNull(left) || isNull(right) || canEqual(one, other)) return []
      return [`${sides(one, other)} are never equal. ${fixOf(operator)}`]
    case 'in':
    case 'not in':
      if (right.kind === 'list') return listProblems(one, right.items, visitor)
      return canHold(other, one) ? [] : [`${listed(one)} is never in ${listed(other)}. ${fixOf(operator)}`]
    default:
      return canOrder(one, other) ? [] : [`${sides(one, other)} have no order. ${fixOf(operator)}`]
  }
}

/** Every item of a list that is written out has a reason to be there. */
function listProblems(one: readonly Variant[], items: readonly Expression[], visitor: Visitor): readonly string[] {
  if (items.length === 0) return ['nothing is in an empty list. Name the values']
  // The problems of the items themselves are found already.
  const quiet = { ...visitor, problems: [] }
  return items.flatMap((item) => {
    const other = shapeIn(item, quiet)
    return isNull(item) || canEqual(one, other) ? [] : [`${sides(one, other)} are never equal. ${fixOf('in')}`]
  })
}

function fixOf(operator: string): string {
  const always = operator === '!=' || operator === 'not in' ? 'always' : 'never'
  return `So the comparison ${always} holds: correct the value or the path`
}

function isNull(expression: Expression): boolean {
  return expression.kind === 'literal' && expression.value === null
}

function canEqual(one: readonly Variant[], other: Shape): boolean {
  return other === 'anything' || one.some((left) => other.some((right) => haveCommon(left, right)))
}

function haveCommon(left: Variant, right: Variant): boolean {
  if (left.kind !== right.kind) return false
  const { values } = right
  if (left.values === undefined || values === undefined) return true
  return left.values.some((value) => values.some((each) => isSame(value, each)))
}

function isSame(left: unknown, right: unknown): boolean {
  return isAnyNumber(left) && isAnyNumber(right) ? compareNumbers(left, right) === 0 : left === right
}

function canOrder(one: readonly Variant[], other: Shape): boolean {
  if (other === 'anything') return one.some(({ kind }) => kind === 'number' || kind === 'string')
  return ['number', 'string'].some((kind) => [one, other].every((shape) => shape.some((each) => each.kind === kind)))
}

function canHold(holder: Shape, one: readonly Variant[]): boolean {
  if (holder === 'anything') return true
  const isText = one.some(({ kind }) => kind === 'string')
  return holder.some(({ kind, schema = {} }) => {
    if (kind === 'array') return canEqual(one, itemsOf(schema))
    return isText && (kind === 'string' || (kind === 'object' && canHaveKey(holder, one)))
  })
}

function canHaveKey(holder: readonly Variant[], one: readonly Variant[]): boolean {
  const keys = one.flatMap(({ values }) => values ?? [])
  const isOpen = one.some(({ kind, values }) => kind === 'string' && values === undefined)
  return isOpen || keys.some((key) => shapeAt(holder, String(key)) !== undefined)
}

function sides(one: readonly Variant[], other: Shape): string {
  return `${listed(one)} and ${listed(other)}`
}

const VALUES_SHOWN_MAX = 8

/** What a value can be, in words. */
function listed(shape: Shape): string {
  if (shape === 'anything') return 'any value'
  const words = shape.flatMap(({ kind, values }) => values?.map((value) => wordOf(value)) ?? [NOUNS[kind]])
  const distinct = [...new Set(words)]
  return distinct.length === 0 ? 'nothing' : distinct.slice(0, VALUES_SHOWN_MAX).join(' or ')
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

const NOUNS = {
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'an object',
} as const
