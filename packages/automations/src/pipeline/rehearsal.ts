import { isImpresarioError } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { compileExpression } from '../expression/expression.ts'
import { Allowance } from '../template/allowance.ts'
import { compileTemplate } from '../template/template.ts'
import { SCOPE } from './compile.ts'
import { isObject } from './reader.ts'
import type { Pipeline, Step } from './step.ts'

/** What a rehearsal reads in place of a real run. */
export interface Rehearsal {
  readonly params: DataObject
  readonly event: Data
  /** Outputs of steps, by their names, as far as they are supposed. */
  readonly steps: DataObject
  /** ISO 8601. */
  readonly now: string
  readonly automation: DataObject
}

/** One step as it would run. No tool is called, so what depends on an output that is not supposed stays open. */
export interface RehearsedStep {
  readonly id: string
  readonly kind: Step['body']['kind']
  /** The tool. */
  readonly uses: string | undefined
  /** `holds` is undefined where the condition reads something that is not known. */
  readonly condition:
    | { readonly source: string; readonly values: DataObject; readonly holds: boolean | undefined }
    | undefined
  /** What the tool would get, or what a person would be asked. What is open stays as it is written. */
  readonly input: Data
  /** How many items a loop has; the input is that of the first one. */
  readonly items: number | undefined
  /** Why something is open, such as an output that is not known. */
  readonly open: readonly string[]
  /** Steps inside. */
  readonly steps: readonly RehearsedStep[]
}

/** What a step that is rehearsed is looked at with. */
interface Around {
  readonly scope: DataObject
  readonly names: readonly string[]
  /** Of the whole rehearsal: its steps are one answer. */
  readonly allowance: Allowance
}

/** Goes through a pipeline: templates are filled in, conditions are evaluated, and nothing is done. */
export function rehearse(pipeline: Pipeline, given: Rehearsal): readonly RehearsedStep[] {
  const { params, event, steps, now, automation } = given
  const scope = { params, event, steps, now, automation, run: { id: 'preview', attempt: 1 } }
  const allowance = new Allowance()
  return pipeline.steps.map((step) => rehearsedStep(step, { scope, names: SCOPE, allowance }))
}

function rehearsedStep(step: Step, around: Around): RehearsedStep {
  const open: string[] = []
  const condition = step.if === undefined ? undefined : conditionOf(step.if, around, open)
  const { items, inside } = looped(step, around, open)
  const { body } = step
  const inner = body.kind === 'pipeline' ? body.steps : body.kind === 'parallel' ? body.branches : []
  return {
    id: step.id,
    kind: body.kind,
    uses: body.kind === 'tool' ? body.uses : undefined,
    condition,
    input:
      body.kind === 'tool'
        ? filled(body.with, inside, open)
        : body.kind === 'approval'
          ? filled({ message: body.approval.message, decisions: [...body.approval.decisions] }, inside, open)
          : null,
    items,
    open: [...new Set(open)].slice(0, OPEN_MAX),
    steps: inner.map((each) => rehearsedStep(each, inside)),
  }
}

const OPEN_MAX = 20

function looped(
  { forEach }: Step,
  around: Around,
  open: string[],
): { readonly items: number | undefined; readonly inside: Around } {
  if (forEach === undefined) return { items: undefined, inside: around }
  const { scope, names } = around
  const inside: Around = { ...around, names: [...names, forEach.as] }
  const list = attempted(() => compileExpression(forEach.items, names).evaluate(scope), open)
  if (!Array.isArray(list)) {
    if (list === undefined) open.push(`"${forEach.items}" is not known before the run.`)
    return { items: undefined, inside }
  }
  const [first] = list as readonly Data[]
  return {
    items: list.length,
    inside: first === undefined ? inside : { ...inside, scope: { ...scope, [forEach.as]: first } },
  }
}

function conditionOf(source: string, { scope, names, allowance }: Around, open: string[]): RehearsedStep['condition'] {
  const expression = compileExpression(source, names)
  const values: Record<string, Data> = {}
  let isKnown = true
  for (const path of expression.paths) {
    const name = path.join('.')
    const value = attempted(() => {
      const found = compileExpression(name, names).evaluate(scope)
      return found === undefined ? undefined : allowance.take(found)
    }, open)
    if (value === undefined && path[0] === 'steps') isKnown = false
    values[name] = (value ?? null) as Data
  }
  if (!isKnown) open.push(`The condition "${source}" reads an output that is not known before the run.`)
  return { source, values, holds: isKnown ? attempted(() => expression.test(scope), open) : undefined }
}

/** Fills in text by text, so that one value that is not known leaves the others readable. */
function filled(value: Data, around: Around, open: string[]): Data {
  const { scope, names, allowance } = around
  if (typeof value === 'string') {
    const template = compileTemplate(value, names)
    const secrets = template.expressions.flatMap(({ paths }) =>
      paths.flatMap(([root, name]) => (root === 'secrets' && name !== undefined ? [name] : [])),
    )
    const marked = { ...scope, secrets: Object.fromEntries(secrets.map((name) => [name, `[secret ${name}]`])) }
    return attempted(() => template.render(marked, allowance), open) ?? value
  }
  if (Array.isArray(value)) return value.map((item) => filled(item as Data, around, open))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, around, open)]))
}

function attempted<T>(run: () => T, open: string[]): T | undefined {
  try {
    return run()
  } catch (error) {
    if (!isImpresarioError(error)) throw error
    open.push(error.message.slice(0, 500))
    return undefined
  }
}
