import { parseExpressionAt } from 'acorn'
import type { AnyNode, CallExpression, Expression, ObjectExpression, Pattern, Property, SpreadElement } from 'acorn'
import type { StateCall, StateLink } from './blueprint.ts'

export interface LinksRead {
  readonly links: readonly StateLink[]
  /** The code has targets, or uses of `actions`, that cannot be read without running it. */
  readonly isDynamic: boolean
  /** What it may wait for beside tasks, children and people: a moment, an event. */
  readonly waits?: readonly string[]
  /** What it hands out, as far as the code shows it. */
  readonly calls?: readonly StateCall[]
}

const METHODS = [
  'transitionTo',
  'dispatchTask',
  'dispatchParallel',
  'awaitHumanApproval',
  'runBlueprint',
  'sleep',
  'waitForEvent',
] as const
type Method = (typeof METHODS)[number]
type Argument = Expression | SpreadElement | undefined

interface Reader {
  readonly links: Map<string, StateLink>
  /** Names that stand for the whole `actions` object. */
  readonly objects: Set<string>
  /** Names that stand for one of its methods, after destructuring. */
  readonly methods: Map<string, string>
  /** What it can wait for by itself, beside tasks, children and people. */
  readonly waits: Set<string>
  readonly calls: Map<string, StateCall>
  isDynamic: boolean
}

/** Finds the literal targets of a handler in its source: what it would be without a declaration of its own. */
export function readLinks(handler: (...args: never[]) => unknown): LinksRead {
  const code = parseFunction(String(handler))
  const reader: Reader = {
    links: new Map(),
    objects: new Set(),
    methods: new Map(),
    waits: new Set(),
    calls: new Map(),
    isDynamic: false,
  }
  if (code === undefined) return { links: [], isDynamic: true }
  const [first, second] = code.params
  if (first?.type === 'RestElement') reader.isDynamic = true
  if (second !== undefined) bind(reader, second)
  for (const param of code.params) if (param.type === 'AssignmentPattern') walk(reader, param.right)
  walk(reader, code.body)
  return {
    links: [...reader.links.values()],
    isDynamic: reader.isDynamic,
    ...(reader.waits.size === 0 ? {} : { waits: [...reader.waits] }),
    ...(reader.calls.size === 0 ? {} : { calls: [...reader.calls.values()] }),
  }
}

type FunctionNode = Extract<AnyNode, { type: 'ArrowFunctionExpression' | 'FunctionExpression' }>

/** A function's text is an expression, except for methods, which only stand inside an object. */
function parseFunction(source: string): FunctionNode | undefined {
  return functionIn(`(${source})`) ?? functionIn(`({${source}})`)
}

function functionIn(source: string): FunctionNode | undefined {
  try {
    const expression = parseExpressionAt(source, 0, { ecmaVersion: 'latest' })
    if (expression.type === 'ArrowFunctionExpression' || expression.type === 'FunctionExpression') return expression
    const member = expression.type === 'ObjectExpression' ? expression.properties[0] : undefined
    return member?.type === 'Property' && member.value.type === 'FunctionExpression' ? member.value : undefined
  } catch {
    return undefined // Bound and native functions show no code.
  }
}

function bind(reader: Reader, pattern: Pattern): void {
  switch (pattern.type) {
    case 'Identifier':
      reader.objects.add(pattern.name)
      break
    case 'AssignmentPattern':
      bind(reader, pattern.left)
      break
    case 'ObjectPattern':
      for (const property of pattern.properties) {
        const key = property.type === 'Property' ? keyOf(property) : undefined
        const local = property.type === 'Property' ? property.value : undefined
        if (key !== undefined && local?.type === 'Identifier') reader.methods.set(local.name, key)
        else reader.isDynamic = true
      }
      break
    default:
      reader.isDynamic = true
  }
}

function walk(reader: Reader, node: AnyNode): void {
  switch (node.type) {
    case 'CallExpression':
      if (readCall(reader, node)) return
      break
    case 'VariableDeclarator':
      if (node.init?.type === 'Identifier' && reader.objects.has(node.init.name)) {
        bind(reader, node.id)
        return
      }
      break
    case 'MemberExpression':
      walk(reader, node.object)
      if (node.computed) walk(reader, node.property)
      return
    case 'Property':
      if (node.computed) walk(reader, node.key)
      walk(reader, node.value)
      return
    case 'Identifier':
      // Handed on to other code, which may choose anything.
      if (reader.objects.has(node.name) || reader.methods.has(node.name)) reader.isDynamic = true
      return
    default:
      break
  }
  for (const child of childrenOf(node)) walk(reader, child)
}

function childrenOf(node: AnyNode): readonly AnyNode[] {
  const parts: readonly unknown[] = Object.values(node).flat()
  return parts.filter(isNode)
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/** True when it was a call of an action, which has been read then. */
function readCall(reader: Reader, { callee, arguments: args }: CallExpression): boolean {
  const name = calledAction(reader, callee)
  const method = METHODS.find((known) => known === name)
  if (method === undefined) return false
  if (args.some((arg) => arg.type === 'SpreadElement')) reader.isDynamic = true
  readTargets(reader, method, args)
  for (const arg of args) walk(reader, arg)
  return true
}

function calledAction(reader: Reader, callee: CallExpression['callee']): string | undefined {
  if (callee.type === 'Identifier') return reader.methods.get(callee.name)
  if (callee.type !== 'MemberExpression' || callee.object.type !== 'Identifier' || callee.computed) return undefined
  return reader.objects.has(callee.object.name) && callee.property.type === 'Identifier'
    ? callee.property.name
    : undefined
}

function readTargets(reader: Reader, method: Method, args: readonly Argument[]): void {
  switch (method) {
    case 'transitionTo':
      addTargets(reader, args[0], undefined, false)
      break
    case 'dispatchParallel':
      for (const name of namesIn(args[0])) addCall(reader, 'task', name)
      withProperty(reader, args[1], 'into', (value) => addTargets(reader, value, undefined, true))
      break
    case 'sleep': {
      const label = labelOfSleep(args[0])
      reader.waits.add(label)
      withProperty(reader, args[1], 'to', (value) => addTargets(reader, value, label, false))
      break
    }
    case 'waitForEvent': {
      const [topic] = literalsOf(args[0]) ?? []
      reader.waits.add(topic === undefined ? 'an event' : `event ${topic}`)
      withProperty(reader, args[1], 'transitions', (value) => addTransitions(reader, value))
      break
    }
    case 'awaitHumanApproval':
      addCall(reader, 'person', '')
      withProperty(reader, args[0], 'transitions', (value) => addTransitions(reader, value))
      break
    default:
      // What a function gives back is not known.
      if (args[0]?.type !== 'CallExpression') {
        for (const name of namesIn(args[0])) addCall(reader, method === 'runBlueprint' ? 'child' : 'task', name)
      }
      withProperty(reader, args[1] ?? args[0], 'transitions', (value) => addTransitions(reader, value))
      if (method === 'runBlueprint') return
      withProperty(reader, args[1] ?? args[0], 'eventTransitions', (value) => addTransitions(reader, value, 'event '))
  }
}

function addCall(reader: Reader, kind: StateCall['kind'], name: string): void {
  reader.calls.set(`${kind} ${name}`, { kind, name })
}

/** The names of what is handed out: types, contracts and blueprints; of a list, those of its entries. */
function namesIn(node: AnyNode | null | undefined): readonly string[] {
  switch (node?.type) {
    case 'Identifier':
      return [node.name]
    case 'MemberExpression':
      return node.computed || node.property.type !== 'Identifier' ? [] : joined(node.object, node.property.name)
    case 'ObjectExpression':
      return node.properties.flatMap((property) =>
        property.type === 'Property' && keyOf(property) === 'type' ? (literalsOf(property.value) ?? []) : [],
      )
    case 'ArrayExpression':
      return node.elements.flatMap(namesIn)
    case 'ArrowFunctionExpression':
      return namesIn(node.body)
    case 'CallExpression':
      return namesOfCall(node)
    default:
      return literalsOf(node as Argument) ?? []
  }
}

/** `media.cut({ … })` is a task of this contract; `list.map((one) => …)` and `Array.from(…, () => …)` are what the function gives. */
function namesOfCall({ callee, arguments: args }: CallExpression): readonly string[] {
  return namesIn(args.find(({ type }) => type === 'ArrowFunctionExpression') ?? callee)
}

function joined(object: AnyNode, property: string): readonly string[] {
  return namesIn(object).map((name) => `${name}.${property}`)
}

/** A span that stands in the code is shown; anything else is known only when the handler runs. */
function labelOfSleep(time: Argument): string {
  const isShown = time?.type === 'Literal' && (typeof time.value === 'string' || typeof time.value === 'number')
  return isShown ? `after ${time.value}${typeof time.value === 'number' ? 'ms' : ''}` : 'after a while'
}

function withProperty(reader: Reader, options: Argument, key: string, use: (value: Expression) => void): void {
  if (options?.type !== 'ObjectExpression') {
    reader.isDynamic = true
    return
  }
  for (const property of propertiesOf(reader, options)) if (keyOf(property) === key) use(property.value)
}

function addTransitions(reader: Reader, value: Expression, prefix = ''): void {
  if (value.type !== 'ObjectExpression') {
    reader.isDynamic = true
    return
  }
  for (const property of propertiesOf(reader, value)) {
    const key = keyOf(property)
    addTargets(reader, property.value, key === undefined ? undefined : `${prefix}${key}`, false)
  }
}

function propertiesOf(reader: Reader, object: ObjectExpression): readonly Property[] {
  const properties: Property[] = []
  for (const property of object.properties) {
    if (property.type === 'Property') properties.push(property)
    else reader.isDynamic = true
  }
  return properties
}

function addTargets(reader: Reader, value: Argument, label: string | undefined, isFanIn: boolean): void {
  const targets = literalsOf(value)
  if (targets === undefined) {
    reader.isDynamic = true
    return
  }
  for (const to of targets) {
    const link = { to, ...(label === undefined ? {} : { label }), ...(isFanIn ? { isFanIn } : {}) }
    reader.links.set(JSON.stringify([to, label]), link)
  }
}

/** The strings that an expression can be, if it shows them. */
function literalsOf(node: Argument): readonly string[] | undefined {
  switch (node?.type) {
    case 'Literal':
      return typeof node.value === 'string' ? [node.value] : undefined
    case 'TemplateLiteral':
      return node.expressions.length === 0 ? node.quasis.map(({ value }) => String(value.cooked)) : undefined
    case 'ConditionalExpression': {
      const consequent = literalsOf(node.consequent)
      const alternate = literalsOf(node.alternate)
      return consequent && alternate && [...consequent, ...alternate]
    }
    default:
      return undefined
  }
}

function keyOf(property: { readonly computed: boolean; readonly key: Expression }): string | undefined {
  const { computed, key } = property
  if (computed) return undefined
  if (key.type === 'Identifier') return key.name
  return key.type === 'Literal' && typeof key.value === 'string' ? key.value : undefined
}
