import { isImpresarioError, stringifyExact } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { compileExpression } from '../expression/expression.ts'
import { textOf } from '../expression/values.ts'
import { SCOPE } from '../pipeline/compile.ts'
import { isObject } from '../pipeline/reader.ts'
import { PIPELINE_LIMITS } from '../pipeline/step.ts'
import type { Step, StepRetry } from '../pipeline/step.ts'
import { Allowance } from '../template/allowance.ts'
import { compileTemplate } from '../template/template.ts'
import { nestingProblem } from './nesting.ts'
import { JUMPS_MAX } from './progress.ts'
import type { Command, ItemResult, Outcome, Pending, RunInput, RunProgress, StepError, StepRecord } from './progress.ts'
import { secretMarks, unmarked } from './secrets.ts'

/** What the world lends to one step of the machine. */
export interface Surroundings {
  /** The present time. */
  readonly at: string
  /** From 0 up to 1, for the jitter of retries. */
  readonly random: () => number
  readonly secretNames: readonly string[]
}

export interface Advanced {
  readonly progress: RunProgress
  readonly command: Command
}

/**
 * Takes a run one step on. Pure: the same progress, outcome and surroundings give the same command, so a run that is
 * interrupted anywhere goes on from its last stored progress.
 *
 * `outcome` is what came of the last command; a run begins without one.
 */
export function advance(
  input: RunInput,
  progress: RunProgress,
  outcome: Outcome | undefined,
  around: Surroundings,
): Advanced {
  const machine = new Machine(input, around)
  if (progress.pending === undefined || outcome === undefined) return machine.begin(progress)
  return machine.resume(progress, progress.pending, outcome)
}

/** Names of everything that templates in this place can read. */
function scopeNames(input: RunInput): readonly string[] {
  return [...SCOPE, ...Object.keys(input.outer.items), 'item']
}

class Machine {
  readonly #input: RunInput
  readonly #around: Surroundings

  constructor(input: RunInput, around: Surroundings) {
    this.#input = input
    this.#around = around
  }

  /** Goes over the steps that do nothing, up to one that has to wait, or to the end. */
  begin(from: RunProgress): Advanced {
    let progress = from
    for (;;) {
      const step = this.#input.pipeline.steps[progress.at]
      if (step === undefined) return this.#end(progress, 'succeeded', undefined)
      const entered = this.#enter(progress, step)
      if (!('skipped' in entered)) return entered
      progress = entered.skipped
    }
  }

  resume(progress: RunProgress, pending: Pending, outcome: Outcome): Advanced {
    const step = this.#input.pipeline.steps[pending.at]
    if (step === undefined) {
      return this.#end(progress, 'failed', { code: 'STEP_GONE', message: 'The step is not there.' })
    }
    switch (outcome.kind) {
      case 'elapsed':
        return this.#attempt(progress, step, { ...pending, for: 'result' })
      case 'result': {
        const tooDeep = nestingProblem('output', outcome.output)
        if (tooDeep !== undefined) return this.#fail(progress, step, pending, tooDeep)
        return this.#succeed(progress, step, pending, outcome.output)
      }
      case 'decision':
        return this.#decided(progress, step, pending, outcome)
      case 'expired':
        return this.#fail(progress, step, pending, {
          code: 'APPROVAL_EXPIRED',
          message: 'No decision was made in time.',
        })
      case 'items':
        return this.#itemsEnded(progress, step, pending, outcome.results)
      case 'error':
        return this.#failedOnce(progress, step, pending, outcome)
    }
  }

  #enter(progress: RunProgress, step: Step): Advanced | { readonly skipped: RunProgress } {
    const pending: Pending = {
      at: progress.at,
      attempt: 1,
      for: 'result',
      input: null,
      condition: undefined,
      startedAt: this.#around.at,
      items: [],
    }
    const looked = this.#guarded(() => this.#condition(progress, step))
    if ('error' in looked) return this.#fail(progress, step, pending, looked.error)
    if (looked.value?.holds === false) {
      const record = this.#record(step, { ...pending, condition: looked.value }, { status: 'skipped' })
      return { skipped: { ...progress, at: progress.at + 1, records: [...progress.records, record] } }
    }
    return this.#attempt(progress, step, { ...pending, condition: looked.value })
  }

  #condition(progress: RunProgress, step: Step): StepRecord['condition'] {
    if (step.if === undefined) return undefined
    const expression = compileExpression(step.if, scopeNames(this.#input))
    const scope = this.#scope(progress)
    const allowance = new Allowance()
    const values = expression.paths.map((path): [string, Data] => {
      const name = path.join('.')
      const value = compileExpression(name, scopeNames(this.#input)).evaluate(scope) ?? null
      return [name, allowance.take(value) as Data]
    })
    return { source: expression.source, values: Object.fromEntries(values), holds: expression.test(scope) }
  }

  /** Sends out what the step does. */
  #attempt(progress: RunProgress, step: Step, pending: Pending): Advanced {
    const ready = this.#guarded(() => this.#prepare(progress, step, pending))
    if ('error' in ready) return this.#fail(progress, step, pending, ready.error)
    const { command, input, waitsFor, isEmpty } = ready.value
    const tooDeep = nestingProblem('input', input)
    if (tooDeep !== undefined) return this.#fail(progress, step, pending, tooDeep)
    const waiting: Pending = { ...pending, input, for: waitsFor }
    if (isEmpty) return this.#succeed(progress, step, waiting, [])
    return { progress: { ...progress, at: pending.at, pending: waiting }, command }
  }

  #prepare(progress: RunProgress, step: Step, pending: Pending): Prepared {
    const scope = this.#scope(progress)
    if (step.forEach !== undefined) return this.#loop(step, scope, pending)
    switch (step.body.kind) {
      case 'tool': {
        const input = this.#render(step.body.with, scope) as DataObject
        const { uses: tool } = step.body
        return prepared(
          { do: 'call', step: step.id, tool, input, timeoutSeconds: step.timeoutSeconds },
          input,
          'result',
        )
      }
      case 'approval': {
        const { decisions, expiresSeconds } = step.body.approval
        const message = textOf(this.#render(step.body.approval.message, scope))
        return prepared({ do: 'ask', step: step.id, message, decisions, expiresSeconds }, { message }, 'decision')
      }
      case 'pipeline':
        return prepared(this.#parts(step, [{ name: step.id, steps: step.body.steps, items: {} }], scope), null, 'items')
      case 'parallel': {
        const branches = step.body.branches.map((branch) => ({ name: branch.id, steps: [branch], items: {} }))
        const names = branches.map((branch) => branch.name)
        return { ...prepared(this.#parts(step, branches, scope), names, 'items'), isEmpty: branches.length === 0 }
      }
    }
  }

  /** The next items of a loop: as many as may run side by side. */
  #loop(step: Step, scope: DataObject, pending: Pending): Prepared {
    const loop = step.forEach
    const items = loop === undefined ? [] : compileExpression(loop.items, scopeNames(this.#input)).evaluate(scope)
    if (!Array.isArray(items)) throw new StepRefusal(`for_each needs a list; "${loop?.items}" gives something else.`)
    if (items.length > PIPELINE_LIMITS.itemsMax) {
      throw new StepRefusal(`for_each takes ${PIPELINE_LIMITS.itemsMax} items; there are ${items.length}.`)
    }
    const done = pending.items.length
    const next = (items as readonly Data[]).slice(done, done + (loop?.concurrency ?? 1))
    const bare: Step = { ...step, forEach: undefined, if: undefined, saveAs: undefined, onError: 'fail' }
    const parts = next.map((item, at) => ({
      name: `${step.id}[${done + at}]`,
      steps: [bare],
      items: { [loop?.as ?? 'item']: item, index: done + at },
    }))
    const fitting = parts.slice(0, this.#sideBySide(parts, scope))
    return {
      ...prepared(this.#parts(step, fitting, scope), { items: items.length }, 'items'),
      isEmpty: items.length === 0,
    }
  }

  /** How many of these parts fit beside each other, with the branches that each may have; one in any case. */
  #sideBySide([first]: readonly Part[], scope: DataObject): number {
    if (first === undefined) return 0
    const chars = stringifyExact(this.#partInput(first, scope, 0)).length * widthOf(first.steps)
    return Math.max(1, Math.floor(this.#room / chars))
  }

  get #room(): number {
    return this.#input.outer.room ?? PIPELINE_LIMITS.sideBySideChars
  }

  #parts(step: Step, parts: readonly Part[], scope: DataObject): Command {
    const room = Math.floor(this.#room / Math.max(1, parts.length))
    return {
      do: 'parts',
      step: step.id,
      parts: parts.map((part) => ({ name: part.name, input: this.#partInput(part, scope, room) })),
    }
  }

  #partInput({ steps, items }: Part, scope: DataObject, room: number): RunInput {
    const outer = { steps: scope['steps'] as DataObject, items: { ...this.#input.outer.items, ...items }, room }
    return { ...this.#input, pipeline: { steps }, outer }
  }

  #decided(progress: RunProgress, step: Step, pending: Pending, outcome: Outcome & { kind: 'decision' }): Advanced {
    const { decision, comment, by } = outcome
    const output = { decision, comment: comment ?? null, by: by ?? null }
    const isFirst = step.body.kind === 'approval' && step.body.approval.decisions[0] === decision
    // A step that reads the decision goes on with every one of them; otherwise only the first one means yes.
    if (isFirst || step.saveAs !== undefined) return this.#succeed(progress, step, pending, output)
    return this.#fail(progress, step, pending, { code: 'REJECTED', message: `The decision was "${decision}".` })
  }

  #itemsEnded(progress: RunProgress, step: Step, pending: Pending, results: readonly ItemResult[]): Advanced {
    const items = [...pending.items, ...results]
    const failed = results.find((result) => result.status === 'failed')
    if (failed !== undefined && step.onError !== 'continue') {
      const error = failed.error ?? { code: 'STEP_FAILED', message: 'A part of the step failed.' }
      return this.#fail(progress, step, { ...pending, items }, error)
    }
    if (step.forEach !== undefined) {
      const total = lengthIn(pending.input)
      if (items.length < total) return this.#attempt(progress, step, { ...pending, items })
      return this.#succeed(progress, step, pending, items.map(resultOf))
    }
    if (step.body.kind === 'parallel') {
      const names = step.body.branches.map((branch) => branch.id)
      return this.#succeed(
        progress,
        step,
        pending,
        Object.fromEntries(names.map((name, at) => [name, resultOf(items[at])])),
      )
    }
    return this.#succeed(progress, step, pending, resultOf(items[0]))
  }

  #failedOnce(
    progress: RunProgress,
    step: Step,
    pending: Pending,
    { error, isFinal }: Outcome & { kind: 'error' },
  ): Advanced {
    const { retry } = step
    if (isFinal || retry === undefined || pending.attempt >= retry.maxAttempts) {
      return this.#fail(progress, step, pending, error)
    }
    const ms = backoffMs(retry, pending.attempt, this.#around.random())
    const next: Pending = { ...pending, attempt: pending.attempt + 1, for: 'backoff' }
    return { progress: { ...progress, pending: next }, command: { do: 'wait', step: step.id, ms } }
  }

  #succeed(progress: RunProgress, step: Step, pending: Pending, output: Data): Advanced {
    const record = this.#record(step, pending, { status: 'succeeded', output })
    const names = step.saveAs === undefined ? [step.id] : [step.id, step.saveAs]
    const outputs = { ...progress.outputs, ...Object.fromEntries(names.map((name) => [name, output])) }
    return this.begin({
      ...progress,
      at: pending.at + 1,
      pending: undefined,
      outputs,
      records: [...progress.records, record],
    })
  }

  #fail(progress: RunProgress, step: Step, pending: Pending, error: StepError): Advanced {
    const records = [...progress.records, this.#record(step, pending, { status: 'failed', error })]
    const failed: RunProgress = { ...progress, pending: undefined, records }
    if (step.onError === 'fail') return this.#end(failed, 'failed', error)
    if (step.onError === 'continue') {
      const names = step.saveAs === undefined ? [step.id] : [step.id, step.saveAs]
      const outputs = {
        ...progress.outputs,
        ...Object.fromEntries(names.map((name) => [name, { error: { ...error } }])),
      }
      return this.begin({ ...failed, at: pending.at + 1, outputs })
    }
    const { goto } = step.onError
    const at = this.#input.pipeline.steps.findIndex((each) => each.id === goto)
    if (at === -1 || progress.jumps >= JUMPS_MAX) {
      const message = at === -1 ? `There is no step "${goto}" to go to.` : `The run jumped ${JUMPS_MAX} times.`
      return this.#end(failed, 'failed', { code: 'JUMP_REFUSED', message })
    }
    return this.begin({ ...failed, at, jumps: progress.jumps + 1 })
  }

  #end(progress: RunProgress, status: 'succeeded' | 'failed', error: StepError | undefined): Advanced {
    const last = progress.records.findLast((record) => record.status === 'succeeded')
    return { progress, command: { do: 'end', status, output: last?.output ?? null, error } }
  }

  #record(step: Step, pending: Pending, more: Partial<StepRecord> & { status: StepRecord['status'] }): StepRecord {
    const { input, condition, attempt, startedAt } = pending
    const { status, output = null, error } = more
    return {
      id: step.id,
      status,
      input,
      condition,
      output,
      attempts: attempt,
      startedAt,
      endedAt: this.#around.at,
      error,
    }
  }

  #scope(progress: RunProgress): DataObject {
    const { params, event, now, automation, run, outer } = this.#input
    const steps = { ...outer.steps, ...progress.outputs }
    const { secretNames } = this.#around
    const given = { params, event, steps, ...outer.items }
    if (secretNames.length === 0) return { ...given, now, automation, run, secrets: {} }
    return { ...unmarked(given), now, automation, run, secrets: secretMarks(secretNames) }
  }

  #render(value: Data, scope: DataObject): Data {
    return compileTemplate(value, scopeNames(this.#input)).render(scope)
  }

  /** What a user's expression does wrong fails its step, not the machine. */
  #guarded<T>(run: () => T): { readonly value: T } | { readonly error: StepError } {
    try {
      return { value: run() }
    } catch (error) {
      if (error instanceof StepRefusal) return { error: { code: 'INVALID_INPUT_ERROR', message: error.message } }
      if (isImpresarioError(error)) return { error: { code: error.code, message: error.message } }
      throw error
    }
  }
}

class StepRefusal extends Error {}

/** How many carry the data of a run while these steps run, one after the other: itself, and branches that are side by side. */
function widthOf(steps: readonly Step[]): number {
  const widths = steps.map(({ body }) => {
    if (body.kind === 'parallel') return 1 + body.branches.reduce((sum, branch) => sum + widthOf([branch]), 0)
    return body.kind === 'pipeline' ? 1 + widthOf(body.steps) : 1
  })
  return Math.max(1, ...widths)
}

interface Part {
  readonly name: string
  readonly steps: readonly Step[]
  readonly items: DataObject
}

interface Prepared {
  readonly command: Command
  /** What goes on record. */
  readonly input: Data
  readonly waitsFor: Pending['for']
  /** There is nothing to do, and nothing to wait for. */
  readonly isEmpty: boolean
}

function prepared(command: Command, input: Data, waitsFor: Pending['for']): Prepared {
  return { command, input, waitsFor, isEmpty: false }
}

function resultOf(result: ItemResult | undefined): Data {
  if (result?.status === 'succeeded') return result.output
  return { error: { code: result?.error?.code ?? 'STEP_FAILED', message: result?.error?.message ?? '' } }
}

/** How many items a loop has, as it was written down when it began. */
function lengthIn(input: Data): number {
  const items = isObject(input) ? input['items'] : 0
  return typeof items === 'number' ? items : 0
}

function backoffMs({ backoff, initialSeconds, maxSeconds }: StepRetry, attempt: number, random: number): number {
  const grown = backoff === 'fixed' ? 1 : backoff === 'linear' ? attempt : 2 ** (attempt - 1)
  const ms = Math.min(initialSeconds * grown, maxSeconds) * 1_000
  return Math.round(backoff === 'exponential_jitter' ? ms * (0.5 + random / 2) : ms)
}
