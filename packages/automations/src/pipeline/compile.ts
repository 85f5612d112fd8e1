import { stringifyExact } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { compileExpression } from '../expression/expression.ts'
import type { Expression } from '../expression/expression.ts'
import { compileTemplate } from '../template/template.ts'
import type { Problems } from './problem.ts'
import { FieldReader, isObject } from './reader.ts'
import { PIPELINE_LIMITS } from './step.ts'
import type { OnError, Pipeline, Step, StepApproval, StepBody, StepLoop, StepRetry } from './step.ts'

/** What templates and conditions can read. `item` and its like are there inside `for_each` only. */
export const SCOPE = ['params', 'event', 'steps', 'now', 'secrets', 'run', 'automation'] as const

interface CheckedTool {
  check(input: DataObject): readonly string[]
  /** `false`: what it is given is kept in records, where no secret may be. */
  readonly takesSecrets?: boolean
}

/** What the compiler asks about a tool. */
export interface ToolCheck {
  /** `undefined` when there is no such tool, or this agent may not use it. */
  named(name: string): CheckedTool | undefined
  /** The scopes that a tool needs and this agent does not have; nothing if there is no such tool. */
  missing?(name: string): readonly string[]
  /** Names that are like this one. */
  similar(name: string): readonly string[]
}

interface Compiler {
  readonly tools: ToolCheck
  readonly problems: Problems
  /** Names under which outputs can be read at this place. */
  readonly outputs: Set<string>
  readonly ids: Set<string>
  /** Names of items of the loops around this place. */
  readonly items: readonly string[]
  count: { steps: number }
}

/**
 * Checks a pipeline and gives it in the form that runs carry. Every problem is told, with the place and the step; nothing is
 * given when there is one.
 */
export function compilePipeline(
  value: unknown,
  tools: ToolCheck,
  problems: Problems,
  path = 'pipeline',
): Pipeline | undefined {
  const before = problems.list.length
  if (!Array.isArray(value)) {
    problems.add(path, 'Must be a list of steps.')
    return undefined
  }
  const bytes = stringifyExact(value).length
  if (bytes > PIPELINE_LIMITS.bytesMax) {
    problems.add(path, `Must have at most ${PIPELINE_LIMITS.bytesMax} characters; it has ${bytes}.`)
    return undefined
  }
  const compiler: Compiler = { tools, problems, outputs: new Set(), ids: new Set(), items: [], count: { steps: 0 } }
  const steps = compileSteps(value as readonly Data[], path, compiler, 1)
  return problems.list.length > before ? undefined : { steps }
}

/** Ids that a `goto` may name: those of the steps in the same list. */
function idsIn(steps: readonly Data[]): Set<string> {
  const ids = steps.map((step, at) => (isObject(step) ? (step['id'] ?? `step_${at}`) : undefined))
  return new Set(ids.filter((id) => typeof id === 'string'))
}

function compileSteps(values: readonly Data[], path: string, around: Compiler, depth: number): readonly Step[] {
  const compiler: Compiler = { ...around, ids: idsIn(values) }
  if (depth > PIPELINE_LIMITS.depthMax) {
    compiler.problems.add(path, `Steps can be nested ${PIPELINE_LIMITS.depthMax} levels deep.`)
    return []
  }
  const seen = new Set<string>()
  return values.flatMap((value, at) => {
    const step = compileStep(value, `${path}[${at}]`, at, compiler, depth)
    if (step === undefined) return []
    if (seen.has(step.id)) compiler.problems.add(`${path}[${at}].id`, 'Another step has this id.', step.id)
    seen.add(step.id)
    return [step]
  })
}

function compileStep(value: Data, path: string, at: number, compiler: Compiler, depth: number): Step | undefined {
  const { problems } = compiler
  compiler.count.steps += 1
  if (compiler.count.steps > PIPELINE_LIMITS.stepsMax) {
    if (compiler.count.steps === PIPELINE_LIMITS.stepsMax + 1) {
      problems.add(
        path,
        `A pipeline can have ${PIPELINE_LIMITS.stepsMax} steps. Move some into a pipeline of their own.`,
      )
    }
    return undefined
  }
  if (!isObject(value)) {
    problems.add(path, 'Must be an object such as {"id": "ask", "uses": "http.request", "with": {}}.')
    return undefined
  }
  const fields = new FieldReader(value, path, problems)
  const id = nameIn(fields, 'id') ?? `step_${at}`
  fields.step = id
  const forEach = loopIn(fields, compiler)
  const inside: Compiler = forEach === undefined ? compiler : { ...compiler, items: [...compiler.items, forEach.as] }
  const condition = fields.text('if', { max: 2_000 })
  if (condition !== undefined) expressionIn(condition, fields.path('if'), id, compiler)
  const step: Step = {
    id,
    saveAs: nameIn(fields, 'save_as'),
    if: condition,
    timeoutSeconds: fields.number('timeout_seconds', { min: 0.001, max: PIPELINE_LIMITS.timeoutSecondsMax }),
    retry: retryIn(fields, problems),
    onError: onErrorIn(fields, compiler),
    forEach,
    body: bodyIn(fields, inside, depth),
  }
  fields.end()
  compiler.outputs.add(id)
  if (step.saveAs !== undefined) compiler.outputs.add(step.saveAs)
  return step
}

/** Names are read in expressions, so they look like names there. */
function nameIn(fields: FieldReader, key: string): string | undefined {
  const name = fields.text(key, { max: PIPELINE_LIMITS.idCharsMax })
  if (name === undefined || /^[A-Za-z_][\w-]*$/.test(name)) return name
  return fields.refuse(key, 'Must begin with a letter and have only letters, digits, "_" and "-".')
}

function bodyIn(fields: FieldReader, compiler: Compiler, depth: number): StepBody {
  const kinds = ['uses', 'approval', 'pipeline', 'parallel'].filter((key) => fields.has(key))
  if (kinds.length !== 1) {
    fields.refuse('uses', 'A step needs exactly one of "uses", "approval", "pipeline" and "parallel".')
  }
  const inputs = fields.object('with') ?? {}
  switch (kinds[0]) {
    case 'approval':
      return { kind: 'approval', approval: approvalIn(fields, compiler) }
    case 'pipeline':
      return {
        kind: 'pipeline',
        steps: compileSteps(fields.list('pipeline') ?? [], fields.path('pipeline'), compiler, depth + 1),
      }
    case 'parallel':
      return { kind: 'parallel', branches: branchesIn(fields, compiler, depth) }
    default:
      return toolIn(fields, inputs, compiler)
  }
}

/** Branches run side by side, so none of them can read another's output. */
function branchesIn(fields: FieldReader, compiler: Compiler, depth: number): readonly Step[] {
  const before = new Set(compiler.outputs)
  const after = new Set(compiler.outputs)
  const branches = (fields.list('parallel') ?? []).flatMap((value, at) => {
    const branch: Compiler = { ...compiler, outputs: new Set(before) }
    const found = compileSteps([value], fields.path('parallel'), branch, depth + 1).map((step) =>
      isObject(value) && value['id'] === undefined ? { ...step, id: `branch_${at}` } : step,
    )
    for (const name of branch.outputs) after.add(name)
    return found
  })
  const ids = branches.map((branch) => branch.id)
  const twice = ids.find((id, at) => ids.indexOf(id) !== at)
  if (twice !== undefined) fields.refuse('parallel', `Two branches have the id "${twice}".`)
  for (const name of after) compiler.outputs.add(name)
  return branches
}

function notUsable(uses: string, tools: ToolCheck): string {
  const missing = tools.missing?.(uses) ?? []
  if (missing.length > 0) {
    return `The tool "${uses}" needs the scope ${missing.join(', ')}, which you do not have.`
  }
  const similar = tools.similar(uses)
  const hint = similar.length === 0 ? 'List the tools to see which there are.' : `Did you mean ${similar.join(' or ')}?`
  return `There is no tool "${uses}". ${hint}`
}

function toolIn(fields: FieldReader, inputs: DataObject, compiler: Compiler): StepBody {
  const uses = fields.text('uses', { max: 200 }) ?? ''
  const template = compiler.problems.try(fields.path('with'), fields.step, () =>
    compileTemplate(inputs, [...SCOPE, ...compiler.items]),
  )
  for (const expression of template?.expressions ?? []) {
    checkReads(expression, fields.path('with'), fields.step, compiler)
  }
  if (uses === '') return { kind: 'tool', uses, with: inputs }
  const tool = compiler.tools.named(uses)
  if (tool === undefined) {
    fields.refuse('uses', notUsable(uses, compiler.tools))
  } else if (tool.takesSecrets === false && template?.expressions.some(readsSecrets) === true) {
    fields.refuse('with', `${uses} keeps what it is given, so it takes no secrets.`)
  } else if (template?.expressions.length === 0) {
    for (const problem of tool.check(inputs)) fields.refuse('with', problem)
  }
  return { kind: 'tool', uses, with: inputs }
}

function readsSecrets({ paths }: Expression): boolean {
  return paths.some(([root]) => root === 'secrets')
}

function approvalIn(fields: FieldReader, compiler: Compiler): StepApproval {
  const value = fields.object('approval') ?? {}
  const inner = new FieldReader(value, fields.path('approval'), compiler.problems)
  inner.step = fields.step
  const message = inner.text('message', { max: 4_000 }) ?? inner.refuse('message', 'Say what is to be decided.') ?? ''
  const template = compiler.problems.try(inner.path('message'), inner.step, () =>
    compileTemplate(message, [...SCOPE, ...compiler.items]),
  )
  for (const expression of template?.expressions ?? []) {
    checkReads(expression, inner.path('message'), inner.step, compiler)
  }
  const decisions = inner.list('decisions') ?? ['approved', 'rejected']
  const named = decisions.filter(
    (each): each is string => typeof each === 'string' && /^[a-z][a-z0-9_]{0,63}$/.test(each),
  )
  if (named.length !== decisions.length || named.length === 0 || new Set(named).size !== named.length) {
    inner.refuse('decisions', 'Must be different names of small letters, digits and "_", one at least.')
  }
  const approval: StepApproval = {
    message,
    decisions: named,
    expiresSeconds: inner.number('expires_seconds', { min: 1, max: PIPELINE_LIMITS.approvalSecondsMax }),
  }
  inner.end()
  return approval
}

function loopIn(fields: FieldReader, compiler: Compiler): StepLoop | undefined {
  const value = fields.raw('for_each')
  if (value === undefined) return undefined
  const given = typeof value === 'string' ? { items: value } : value
  if (!isObject(given)) {
    return fields.refuse('for_each', 'Must be an expression that gives a list, or {items, as, concurrency}.')
  }
  const inner = new FieldReader(given, fields.path('for_each'), compiler.problems)
  inner.step = fields.step
  const items = inner.text('items', { max: 2_000 })
  if (items === undefined) inner.refuse('items', 'Must be an expression that gives a list.')
  else expressionIn(items, inner.path('items'), fields.step, compiler)
  const as = nameIn(inner, 'as') ?? 'item'
  if ((SCOPE as readonly string[]).includes(as)) inner.refuse('as', `"${as}" has a meaning of its own.`)
  const concurrency = inner.number('concurrency', { min: 1, max: PIPELINE_LIMITS.concurrencyMax, isWhole: true }) ?? 10
  inner.end()
  return { items: items ?? '', as, concurrency }
}

function retryIn(fields: FieldReader, problems: Problems): StepRetry | undefined {
  const value = fields.raw('retry')
  if (value === undefined) return undefined
  const given = typeof value === 'number' ? { max_attempts: value } : value
  if (!isObject(given)) return fields.refuse('retry', 'Must be a number of attempts, or {max_attempts, backoff, …}.')
  const inner = new FieldReader(given, fields.path('retry'), problems)
  inner.step = fields.step
  const retry: StepRetry = {
    maxAttempts: inner.number('max_attempts', { min: 1, max: PIPELINE_LIMITS.retryAttemptsMax, isWhole: true }) ?? 3,
    backoff: inner.oneOf('backoff', ['exponential_jitter', 'exponential', 'linear', 'fixed']) ?? 'exponential_jitter',
    initialSeconds: inner.number('initial_seconds', { min: 0, max: 3_600 }) ?? 1,
    maxSeconds: inner.number('max_seconds', { min: 0, max: 86_400 }) ?? 60,
  }
  inner.end()
  return retry
}

function onErrorIn(fields: FieldReader, compiler: Compiler): OnError {
  const value = fields.raw('on_error')
  if (value === undefined || value === 'fail') return 'fail'
  if (value === 'continue') return 'continue'
  const written =
    typeof value === 'string' ? /^goto +(\S+)$/.exec(value)?.[1] : isObject(value) ? value['goto'] : undefined
  if (typeof written !== 'string') {
    return fields.refuse('on_error', 'Must be "fail", "continue" or "goto <id>".') ?? 'fail'
  }
  if (!compiler.ids.has(written)) fields.refuse('on_error', `There is no step "${written}" to go to.`)
  return { goto: written }
}

function expressionIn(source: string, path: string, step: string | undefined, compiler: Compiler): void {
  const expression = compiler.problems.try(path, step, () => compileExpression(source, [...SCOPE, ...compiler.items]))
  if (expression !== undefined) checkReads(expression, path, step, compiler)
}

/** A path that begins with `steps` must name a step that ran before. */
function checkReads(expression: Expression, path: string, step: string | undefined, compiler: Compiler): void {
  for (const [root, name] of expression.paths) {
    if (root !== 'steps' || name === undefined || compiler.outputs.has(name)) continue
    const known = [...compiler.outputs].join(', ')
    const hint = known === '' ? 'No step comes before this one.' : `Outputs that are there: ${known}.`
    compiler.problems.add(path, `"steps.${name}" is not the output of an earlier step. ${hint}`, step)
  }
}
