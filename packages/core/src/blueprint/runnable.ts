import { chain, ImpresarioError, isEventType, LIMITS, partProblems, validate } from '@impresario/protocol'
import type { EventType, JsonObject, Schema, Soon } from '@impresario/protocol'
import type { Compensation, Job } from '../job/job.ts'
import type { Migration, RunnableBlueprint, StateNode, TurnInput, TurnOutput } from './blueprint.ts'
import { compileCondition, jsonSchemaOf } from './condition.ts'
import { contextOf, undoContext, withoutResults } from './context.ts'
import type { RawContext } from './context.ts'
import { historyExcess } from '../job/capacity.ts'
import { jsonCopy, jsonObjectCopy, storedCopy } from './json-copy.ts'
import { nodeOf } from './node.ts'
import { POLICY_DEFAULTS, completePolicy } from './policy.ts'
import { createRecorder, placed } from './recorder.ts'
import type { Recorder } from './recorder.ts'
import { gatheredNames } from './results.ts'
import type { StateLocation } from './results.ts'
import type { ScriptPolicy, ScriptState } from './script.ts'
import { definitionOf } from './states.ts'
import type { AnyHandler, Definition, Rule } from './states.ts'
import { UndoRecorder } from './undo.ts'
import type { AnyUndo } from './undo.ts'

/** What a blueprint is made of, once its types have done their work. */
export interface Parts {
  readonly version: number
  readonly start: string
  readonly endpoint: string | undefined
  readonly apiVersion?: string | undefined
  readonly ownPolicy: Partial<ScriptPolicy>
  readonly input: Schema | undefined
  readonly history?: Schema | undefined
  readonly output: Schema | undefined
  readonly events: readonly EventType[] | undefined
  readonly dataStores: object
  readonly migrate:
    | ((job: Migratable) => { readonly state: string; readonly stateHistory: object } | undefined)
    | undefined
  readonly states: Readonly<Record<string, unknown>>
}

interface Migratable {
  readonly state: string
  readonly stateHistory: JsonObject
  readonly blueprintVersion: number
  readonly initialData: JsonObject
}

interface Compiled {
  readonly script: ScriptState
  readonly definition: Definition
  readonly run: (context: RawContext, offloads: boolean) => Soon<TurnOutput>
  /** Undoes it, if it can be. */
  readonly undo?:
    | ((context: RawContext, compensation: Compensation, offloads: boolean) => Promise<TurnOutput>)
    | undefined
}

/** The terminal state that every blueprint has: statuses without a transition lead there. */
const IMPLICIT_FAILED: Definition = { kind: 'end', outcome: 'failed', result: undefined }

export function runnable<Name extends string>(name: Name, parts: Parts): RunnableBlueprint & { readonly name: Name } {
  const { input, history, output } = parts
  const topics = parts.events?.map(({ topic }) => topic)
  const states = new Map<string, Compiled>()
  const find = (state: string) => states.get(state)?.script
  const names = () => states.keys()
  const compile = (state: string, definition: Definition) =>
    states.set(state, compileState({ blueprint: name, state, definition, find, names, input, history, output, topics }))
  for (const [state, built] of Object.entries(parts.states)) compile(state, checkedDefinition(name, state, built))
  const declared = [...states]
  checkStart(name, parts.start, states)
  if (!states.has('failed')) compile('failed', IMPLICIT_FAILED)

  let nodes: readonly StateNode[] | undefined
  return {
    name,
    version: parts.version,
    start: parts.start,
    policy: completePolicy(parts.ownPolicy, POLICY_DEFAULTS),
    ownPolicy: parts.ownPolicy,
    ...(parts.endpoint === undefined ? {} : { endpoint: parts.endpoint }),
    ...(parts.apiVersion === undefined ? {} : { apiVersion: parts.apiVersion }),
    state: find,
    // Reading the handlers' code takes a while, and only the registry and the graph need it.
    get nodes() {
      nodes ??= declared.map(([state, { script, definition }]) =>
        nodeOf({ name: state, isStart: state === parts.start, script, definition }),
      )
      return nodes
    },
    get inputSchema() {
      return jsonSchemaOf(input, 'input')
    },
    perform: (turn) => perform(name, states, parts.dataStores, turn),
    validateInput: (data) => validateData(parts.input, data, 'initialData'),
    ...eventsOf(name, parts.events),
    migrate: (job) => migrate(name, parts.migrate, find, job),
  }
}

function checkedDefinition(blueprint: string, state: string, built: unknown): Definition {
  if (state === '' || state.length > LIMITS.identifierCharsMax) {
    throw refusal(blueprint, state, `a name has from 1 to ${LIMITS.identifierCharsMax} characters`)
  }
  const definition = definitionOf(built)
  if (definition === undefined) {
    throw refusal(blueprint, state, 'is not a state. Make it with state.handler(…), state.aggregator(…) or state.end()')
  }
  return definition
}

function checkStart(blueprint: string, start: string, states: ReadonlyMap<string, unknown>): void {
  if (states.has(start)) return
  const known = [...states.keys()].map((state) => `"${state}"`).join(', ')
  throw new ImpresarioError(
    'INVALID_BLUEPRINT',
    `Blueprint "${blueprint}": it starts in ${JSON.stringify(start)}, which is not one of its states (${known}). ` +
      'Set `start` to one of them.',
  )
}

function refusal(blueprint: string, state: string, problem: string): ImpresarioError {
  return new ImpresarioError('INVALID_BLUEPRINT', `Blueprint "${blueprint}", state "${state}": ${problem}.`)
}

interface StateParts {
  readonly blueprint: string
  readonly state: string
  readonly definition: Definition
  readonly find: (state: string) => ScriptState | undefined
  readonly names: () => Iterable<string>
  readonly input: Schema | undefined
  readonly history: Schema | undefined
  readonly output: Schema | undefined
  readonly topics: readonly string[] | undefined
  /** In a turn: whether large values are kept apart. */
  readonly offloads?: boolean
}

function compileState(parts: StateParts): Compiled {
  const { state, definition } = parts
  if (definition.kind !== 'end') {
    const rules = definition.rules.map((rule) => compileRule(parts, rule))
    const { undo } = definition
    // Made once, and not for every turn.
    const [apart, together] = [
      { ...parts, offloads: true },
      { ...parts, offloads: false },
    ]
    return {
      script: scriptOf(parts, definition),
      definition,
      run: (context, offloads) => runRules(offloads ? apart : together, rules, context),
      ...(undo === undefined
        ? {}
        : {
            undo: async (context, why, offloads) => runUndo({ ...parts, offloads }, undo, context, why),
          }),
    }
  }
  const outcome = definition.outcome ?? (state === 'failed' || state === 'error' ? state : 'finished')
  const { result } = definition
  const output = outcome === 'finished' ? parts.output : undefined
  return {
    script: { kind: 'end', outcome, computes: result !== undefined },
    definition,
    run: async (context, offloads) => runEnd({ ...parts, offloads }, context, result, output),
  }
}

function scriptOf(place: StateLocation, definition: Exclude<Definition, { readonly kind: 'end' }>): ScriptState {
  const gathers = definition.kind === 'aggregator' ? definition.gathers : undefined
  const script: Exclude<ScriptState, { readonly kind: 'end' }> =
    gathers === undefined ? { kind: definition.kind } : { kind: 'aggregator', gathers: gatheredNames(gathers, place) }
  return definition.undo === undefined ? script : { ...script, hasUndo: true }
}

interface CompiledRule {
  readonly test: (context: RawContext) => boolean
  readonly handler: AnyHandler
}

function compileRule(parts: StateParts, { condition, handler }: Rule): CompiledRule {
  if (typeof handler !== 'function') throw refusal(parts.blueprint, parts.state, 'its handler is not a function')
  if (condition === undefined) return { test: () => true, handler }
  if (typeof condition === 'function') {
    return { test: (context) => condition(withoutResults(context)) === true, handler }
  }
  const expression = inPlace(parts, () => compileCondition(condition, parts))
  return { test: (context) => expression.test({ context }), handler }
}

/** A handler that waits for nothing, in a blueprint without a schema of its history, has chosen when this returns. */
function runRules(parts: StateParts, rules: readonly CompiledRule[], context: RawContext): Soon<TurnOutput> {
  // Without a schema nothing is awaited: the guard of handlers holds only what runs at once.
  if (parts.history === undefined) return runRule(parts, rules, context)
  return checkHistory(parts, parts.history, context.stateHistory).then(() => runRule(parts, rules, context))
}

function runRule(parts: StateParts, rules: readonly CompiledRule[], context: RawContext): Soon<TurnOutput> {
  const rule = rules.find(({ test }) => test(context))
  if (rule === undefined) {
    const fix = 'Add .otherwise(handler) for the jobs that none of them fits'
    throw refusal(parts.blueprint, parts.state, `none of its ${rules.length} conditions holds. ${fix}`)
  }
  const recorder = createRecorder(parts)
  const seen = parts.definition.kind === 'aggregator' ? Object.freeze(context) : withoutResults(context)
  let output: Soon<TurnOutput>
  try {
    const returned: unknown = rule.handler(seen, recorder.actions)
    output = isThenable(returned)
      ? settledLater(parts, context, recorder, returned)
      : settled(parts, context, recorder, returned)
  } catch (error) {
    recorder.close()
    throw error
  }
  if (output instanceof Promise) return output.finally(() => recorder.close())
  recorder.close()
  return output
}

async function settledLater(
  parts: StateParts,
  context: RawContext,
  recorder: Recorder,
  returned: PromiseLike<unknown>,
): Promise<TurnOutput> {
  return settled(parts, context, recorder, await returned)
}

function settled(parts: StateParts, context: RawContext, recorder: Recorder, returned: unknown): Soon<TurnOutput> {
  const { action, patch } = recorder.settle(returned)
  const stateHistory = historyOf(parts, { ...context.stateHistory, ...storedCopy(patch) })
  if (parts.history === undefined) return { action, stateHistory }
  return checkHistory(parts, parts.history, storedCopy(stateHistory)).then(() => ({ action, stateHistory }))
}

/** What `await` would wait for. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

async function runUndo(
  parts: StateParts,
  undo: AnyUndo,
  context: RawContext,
  compensation: Compensation,
): Promise<TurnOutput> {
  await checkAnyHistory(parts, context.stateHistory)
  const recorder = new UndoRecorder()
  const returned = await undo(undoContext(context, compensation), recorder.actions)
  const action = inPlace(parts, () => recorder.settle(returned))
  const stateHistory = historyOf(parts, context.stateHistory)
  return { action, stateHistory }
}

async function runEnd(
  parts: StateParts,
  context: RawContext,
  result: ((context: object) => unknown) | undefined,
  output: Schema | undefined,
): Promise<TurnOutput> {
  await checkAnyHistory(parts, context.stateHistory)
  const returned = await result?.(withoutResults(context))
  const stateHistory = historyOf(parts, context.stateHistory)
  if (returned === undefined) return { action: { type: 'end' }, stateHistory }
  const checked = output === undefined ? { value: returned } : await validate(output, returned)
  if ('problems' in checked) {
    throw refusal(parts.blueprint, parts.state, `the result does not fit \`output\`: ${checked.problems.join('; ')}`)
  }
  return { action: { type: 'end', result: inPlace(parts, () => jsonCopy(checked.value, 'The result')) }, stateHistory }
}

function historyOf(place: StateLocation & { readonly offloads?: boolean }, left: object): JsonObject {
  return inPlace(place, () => {
    const history = jsonObjectCopy(left, 'stateHistory')
    const size = historyExcess(history, place.offloads === true)
    if (size === undefined) return history
    const most = place.offloads === true ? LIMITS.offloadedHistoryBytesMax : LIMITS.contextBytesMax
    throw new ImpresarioError(
      'LIMIT_EXCEEDED',
      `stateHistory has grown to ${size} bytes; at most ${most} are allowed. Put large data into files.`,
    )
  })
}

/** Holds what is there of the state history against its schema: what handlers find is what the compiler told them. */
async function checkAnyHistory(parts: StateParts, written: object): Promise<void> {
  if (parts.history !== undefined) await checkHistory(parts, parts.history, written)
}

async function checkHistory({ blueprint, state }: StateLocation, history: Schema, written: object): Promise<void> {
  const problems = await partProblems(history, written)
  if (problems.length === 0) return
  const fix = 'Correct what was written, or the schema'
  throw refusal(blueprint, state, `stateHistory does not fit \`history\`: ${problems.join('; ')}. ${fix}`)
}

function inPlace<T>(place: StateLocation, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw placed(error, place)
  }
}

function perform(
  blueprint: string,
  states: ReadonlyMap<string, Compiled>,
  dataStores: object,
  input: TurnInput,
): Soon<TurnOutput> {
  const { job } = input
  const state = states.get(job.state)
  if (state === undefined) {
    throw refusal(blueprint, job.state, 'it is not a state of this version. Give the blueprint a migrate function')
  }
  const { definition } = state
  const gathers = definition.kind === 'aggregator' ? definition.gathers : undefined
  const isState = (name: string): boolean => states.has(name)
  const context = contextOf(input, { dataStores, isState, gathers })
  const { compensation } = job
  const offloads = input.offloads === true
  if (compensation === undefined) return state.run(context, offloads)
  if (state.undo === undefined) throw refusal(blueprint, job.state, 'it has no undo in this version. Add it again')
  return state.undo(context, compensation, offloads)
}

function eventsOf(
  blueprint: string,
  events: readonly EventType[] | undefined,
): Pick<RunnableBlueprint, 'topics' | 'validateEvent'> {
  if (events === undefined) return {}
  const schemas = new Map<string, Schema>()
  for (const event of events) {
    if (!isEventType(event)) {
      const fix = "Make each with eventType('order.paid', z.object({ … }))."
      throw new ImpresarioError('INVALID_BLUEPRINT', `Blueprint "${blueprint}": its \`events\` are not events. ${fix}`)
    }
    schemas.set(event.topic, event.payload)
  }
  const topics = [...schemas.keys()]
  return {
    topics,
    validateEvent: (topic, payload) => {
      const schema = schemas.get(topic)
      if (schema !== undefined) return validateData(schema, payload, 'payload')
      return { problems: [`"${blueprint}" knows no event "${topic}". It knows ${topics.join(', ')}.`] }
    },
  }
}

/** Without a schema, data that is stored or about to be is as it should be. */
function validateData(
  schema: Schema | undefined,
  data: JsonObject,
  place: string,
): Soon<{ readonly value: JsonObject } | { readonly problems: readonly string[] }> {
  if (schema === undefined) return { value: data }
  return chain(validate(schema, storedCopy(data)), (checked) => {
    if ('problems' in checked) return checked
    try {
      return { value: jsonObjectCopy(checked.value, place) }
    } catch (error) {
      return { problems: [String(error)] }
    }
  })
}

function migrate(
  blueprint: string,
  user: Parts['migrate'],
  find: (state: string) => ScriptState | undefined,
  job: Job,
): Migration | undefined {
  const moved = user?.({
    state: job.state,
    stateHistory: storedCopy(job.stateHistory),
    blueprintVersion: job.blueprintVersion,
    initialData: storedCopy(job.initialData),
  })
  if (moved === undefined) return undefined
  if (find(moved.state) === undefined) {
    throw refusal(blueprint, job.state, `migrate leads to "${moved.state}", which is not a state of this version`)
  }
  return { state: moved.state, stateHistory: historyOf({ blueprint, state: job.state }, moved.stateHistory) }
}
