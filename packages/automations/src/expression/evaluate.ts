import { ImpresarioError, isAnyNumber, isEqual, isIn, isTrue, orderOf, ownOf } from '@impresario/protocol'
import { isoInstant } from '@impresario/recurrence'
import { FUNCTIONS, momentOf, nameOf } from './functions.ts'
import type { Arg } from './functions.ts'
import type { Arithmetic, Comparison, Node, Over } from './node.ts'
import { textOf } from './values.ts'

/** Nodes that one evaluation may visit. A filter inside a filter over 10,000 items would visit 100 million. */
const VISITS_MAX = 200_000
/** What an expression may build, in characters. */
const TEXT_MAX = 1_048_576

interface Evaluation {
  readonly source: string
  readonly root: unknown
  /** Comparing the size of what has none fails, instead of not holding. Items of lists are left out by it as ever. */
  readonly isStrict: boolean
  visits: number
}

/** What an expression gives. `undefined` when it reads something that is not there. */
export function evaluate(node: Node, source: string, root: unknown, isStrict = false): unknown {
  return valueOf(node, root, { source, root, isStrict, visits: 0 })
}

function failed(source: string, problem: string): ImpresarioError {
  const shown = source.length <= 120 ? source : `${source.slice(0, 117)}...`
  return new ImpresarioError('INVALID_EXPRESSION', `Expression "${shown}": ${problem}.`)
}

function valueOf(node: Node, current: unknown, run: Evaluation): unknown {
  run.visits += 1
  if (run.visits > VISITS_MAX) {
    throw failed(run.source, `it takes more than ${VISITS_MAX} steps; filter the data earlier`)
  }
  switch (node.kind) {
    case 'literal':
      return node.value
    case 'duration':
      return { durationMs: node.ms }
    case 'root':
      return run.root
    case 'current':
      return current
    case 'field':
      return ownOf(valueOf(node.of, current, run), node.name)
    case 'index':
      return itemOf(valueOf(node.of, current, run), node.index)
    case 'project':
      return projected(node.of, node.over, node.each, current, run)
    case 'pipe':
      return valueOf(node.into, valueOf(node.of, current, run), run)
    case 'list':
      return node.items.map((item) => valueOf(item, current, run) ?? null)
    case 'object':
      return Object.fromEntries(node.entries.map(({ key, value }) => [key, valueOf(value, current, run) ?? null]))
    case 'call':
      return called(node.name, node.args, current, run)
    case 'reference':
      throw failed(run.source, '"&" stands only before an argument of a function')
    case 'not':
      return !isTrue(valueOf(node.operand, current, run))
    case 'negate':
      return calculated('-', 0, valueOf(node.operand, current, run), run)
    case 'and': {
      const left = valueOf(node.left, current, run)
      return isTrue(left) ? valueOf(node.right, current, run) : left
    }
    case 'or': {
      const left = valueOf(node.left, current, run)
      return isTrue(left) ? left : valueOf(node.right, current, run)
    }
    case 'compare': {
      const [left, right] = [valueOf(node.left, current, run), valueOf(node.right, current, run)]
      if (run.isStrict && current === run.root && !hasOrder(node.operator, left, right)) {
        throw failed(run.source, 'it compares the size of something that is not there, or is of another kind')
      }
      return compared(node.operator, left, right)
    }
    case 'arithmetic':
      return calculated(node.operator, valueOf(node.left, current, run), valueOf(node.right, current, run), run)
  }
}

function itemOf(value: unknown, index: number): unknown {
  return Array.isArray(value) ? (value as readonly unknown[]).at(index) : undefined
}

function projected(of: Node, over: Over, each: Node, current: unknown, run: Evaluation): unknown {
  const items = itemsOf(valueOf(of, current, run), over, run)
  return items?.map((item) => valueOf(each, item, run)).filter((item) => item !== undefined && item !== null)
}

function itemsOf(value: unknown, over: Over, run: Evaluation): readonly unknown[] | undefined {
  if (over.by === 'values') {
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.values(value) : undefined
  }
  if (!Array.isArray(value)) return undefined
  const items = value as readonly unknown[]
  switch (over.by) {
    case 'items':
      return items
    case 'flattened':
      return items.flat()
    case 'matching':
      return items.filter((item) => isTrue(valueOf(over.condition, item, run)))
    case 'slice':
      return sliced(items, over.from, over.to, over.step)
  }
}

/** As in Python: negative positions count from the end, and a negative step goes backwards. */
function sliced(
  items: readonly unknown[],
  from: number | undefined,
  to: number | undefined,
  step: number,
): readonly unknown[] {
  const { length } = items
  const clamp = (at: number): number => {
    const place = at < 0 ? at + length : at
    return step > 0 ? Math.min(Math.max(place, 0), length) : Math.min(Math.max(place, -1), length - 1)
  }
  const first = from === undefined ? (step > 0 ? 0 : length - 1) : clamp(from)
  const end = to === undefined ? (step > 0 ? length : -1) : clamp(to)
  const found: unknown[] = []
  for (let at = first; step > 0 ? at < end : at > end; at += step) found.push(items[at])
  return found
}

function called(name: string, args: readonly Node[], current: unknown, run: Evaluation): unknown {
  const given = args.map((arg): Arg =>
    arg.kind === 'reference'
      ? { value: undefined, of: (item) => valueOf(arg.to, item, run) }
      : { value: valueOf(arg, current, run), of: undefined },
  )
  const found = FUNCTIONS.get(name)?.run(given, (problem) => {
    throw failed(run.source, `${name}() ${problem}`)
  })
  if (typeof found === 'string' && found.length > TEXT_MAX) throw failed(run.source, `${name}() gives more than 1 MB`)
  return found
}

function compared(operator: Comparison, left: unknown, right: unknown): boolean {
  switch (operator) {
    case '==':
      return isEqual(left, right)
    case '!=':
      return !isEqual(left, right)
    case 'in':
      return isIn(left, right)
    case 'not in':
      return !isIn(left, right)
    default: {
      const order = orderOf(measure(left), measure(right)) ?? Number.NaN
      return operator === '<' ? order < 0 : operator === '<=' ? order <= 0 : operator === '>' ? order > 0 : order >= 0
    }
  }
}

function hasOrder(operator: Comparison, left: unknown, right: unknown): boolean {
  return !/[<>]/.test(operator) || orderOf(measure(left), measure(right)) !== undefined
}

/** Times compare as instants, whatever offset they are written with. */
function measure(value: unknown): unknown {
  return momentOf(value) ?? durationOf(value) ?? value
}

function durationOf(value: unknown): number | undefined {
  const ms = ownOf(value, 'durationMs')
  return typeof ms === 'number' ? ms : undefined
}

function calculated(operator: Arithmetic, left: unknown, right: unknown, run: Evaluation): unknown {
  const shift = durationOf(right)
  if (shift !== undefined && (operator === '+' || operator === '-')) {
    const at = momentOf(left)
    if (at !== undefined) return isoInstant(at + (operator === '+' ? shift : -shift))
  }
  if (operator === '+' && typeof left === 'string' && typeof right === 'string') return joined(left, right, run)
  if (!isAnyNumber(left) || !isAnyNumber(right)) {
    throw failed(run.source, `"${operator}" cannot join ${nameOf(left)} and ${nameOf(right)}`)
  }
  const found = numberOf(operator, Number(left), Number(right))
  if (!Number.isFinite(found)) throw failed(run.source, `${textOf(left)} ${operator} ${textOf(right)} has no result`)
  return found
}

function joined(left: string, right: string, run: Evaluation): string {
  if (left.length + right.length > TEXT_MAX) throw failed(run.source, 'it gives more than 1 MB')
  return left + right
}

function numberOf(operator: Arithmetic, left: number, right: number): number {
  switch (operator) {
    case '+':
      return left + right
    case '-':
      return left - right
    case '*':
      return left * right
    case '/':
      return left / right
    case '%':
      return left % right
  }
}
