import { ImpresarioError, isImpresarioError, isTaskContract, LIMITS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import type { Action } from '../job/action.ts'
import { BRANCH_POLICIES } from '../job/job.ts'
import type { BranchPolicy, Call } from '../job/job.ts'
import type { Actions, ActionToken } from './actions.ts'
import {
  childCallOf,
  eventTransitionsOf,
  eventWaitOf,
  optionsOf,
  formOf,
  remindersOf,
  sleepOf,
  spanOf,
  taskCallOf,
  transitionsOf,
} from './calls.ts'
import { didYouMean } from '../text/near-word.ts'
import { jsonObjectCopy, jsonSize } from './json-copy.ts'
import type { ScriptState } from './script.ts'

/** What a handler can choose; only end states end. */
type Chosen = Exclude<Action, { readonly type: 'end' | 'undone' }>

interface Choice {
  readonly token: ActionToken
  readonly action: Chosen
  /** The aggregator that every transition of a task leads to: it takes part in a fan-out. */
  readonly into: string | undefined
}

export interface Recorder {
  readonly actions: Actions
  /** Ends the run: what the handler chose, if what it returned fits. Throws what user code did wrong, also if it caught that. */
  settle(returned: unknown): { readonly action: Action; readonly patch: JsonObject }
  /** Ends the run of a handler that threw. */
  close(): void
}

export interface RecorderOptions {
  readonly blueprint: string
  readonly state: string
  /** Looks up a possible target. */
  readonly find: (state: string) => ScriptState | undefined
  /** All states, for suggestions. */
  readonly names: () => Iterable<string>
  /** The events that the blueprint declares, if it declares any. */
  readonly topics?: readonly string[] | undefined
}

/**
 * Writes down what one handler run chooses. Open until the handler returns or throws; while open it
 * takes exactly one action, or several tasks that lead to one aggregator. The first mistake breaks
 * it for good: a handler that swallows the error must not go on as if nothing had happened.
 */
export function createRecorder(options: RecorderOptions): Recorder {
  const choices: Choice[] = []
  let patch: JsonObject = {}
  let isOpen = true
  let mistake: { readonly error: unknown } | undefined

  const choose: Choose = (name, build) => {
    try {
      if (!isOpen) throw misuse(`calls ${name} after its handler has returned. Await everything before you return.`)
      const choice = choiceOf(build(), options)
      checkTogether(choices, choice, name)
      choices.push(choice)
      return choice.token
    } catch (error) {
      mistake ??= { error: placed(error, options) }
      throw mistake.error
    }
  }

  const actions = actionsFor(choose, options.topics, (given) => {
    patch = given
  })

  return {
    actions,
    close: () => {
      isOpen = false
    },
    settle: (returned) => {
      isOpen = false
      if (mistake !== undefined) throw mistake.error
      try {
        return { action: actionOf(returned, choices), patch }
      } catch (error) {
        throw placed(error, options)
      }
    },
  }
}

type Choose = (name: string, build: () => Chosen) => ActionToken

/** Boundary: the implementation takes what JavaScript may pass; `Actions` is what the compiler lets through. */
function actionsFor(choose: Choose, topics: readonly string[] | undefined, keep: (patch: JsonObject) => void): Actions {
  const actions = {
    transitionTo: (to: unknown, patch?: unknown) =>
      choose('transitionTo', () => {
        if (typeof to !== 'string') throw misuse('calls transitionTo without the name of a state.')
        if (patch !== undefined) keep(jsonObjectCopy(patch, 'The patch of transitionTo'))
        return { type: 'transition', to }
      }),
    dispatchTask: (first: unknown, second?: unknown) =>
      choose('dispatchTask', () => {
        const given = optionsOf(isTaskContract(first) ? second : first, 'dispatchTask')
        const call = isTaskContract(first) ? taskCallOf({ ...given, type: first.name }) : taskCallOf(given)
        const eventTransitions = eventTransitionsOf(given)
        const transitions = transitionsOf(given, 'dispatchTask')
        return { type: 'task', call, transitions, ...(eventTransitions === undefined ? {} : { eventTransitions }) }
      }),
    dispatchParallel: (calls: unknown, second: unknown) =>
      choose('dispatchParallel', () => parallelOf(calls, optionsOf(second, 'dispatchParallel'))),
    awaitHumanApproval: (first: unknown) =>
      choose('awaitHumanApproval', () => {
        const given = optionsOf(first, 'awaitHumanApproval')
        const message = typeof given['message'] === 'string' ? given['message'] : ''
        const transitions = transitionsOf(given, 'awaitHumanApproval')
        const expiresMs = spanOf(given, 'expires')
        const expiry = expiresMs === undefined ? {} : { expiresMs }
        return { type: 'human', message, transitions, ...expiry, ...remindersOf(given), ...formOf(given, transitions) }
      }),
    waitForEvent: (event: unknown, second: unknown) =>
      choose('waitForEvent', () => ({
        type: 'event',
        ...eventWaitOf(event, optionsOf(second, 'waitForEvent'), topics),
      })),
    sleep: (time: unknown, second: unknown) =>
      choose('sleep', () => {
        const { to } = optionsOf(second, 'sleep')
        if (typeof to !== 'string') throw misuse('calls sleep without `to`. Name the state that follows.')
        return { type: 'sleep', ...sleepOf(time), to }
      }),
    runBlueprint: (first: unknown, second?: unknown) =>
      choose('runBlueprint', () => {
        const target = optionsOf(first, 'runBlueprint')
        const given = second === undefined ? target : optionsOf(second, 'runBlueprint')
        const call = childCallOf({ blueprint: target['name'], initialData: given['initialData'] })
        return { type: 'child', call, transitions: transitionsOf(given, 'runBlueprint') }
      }),
  }
  return actions as unknown as Actions
}

function parallelOf(calls: unknown, given: Readonly<Record<string, unknown>>): Chosen {
  const { into, policy = 'wait_all' } = given
  const listed = listedCalls(calls)
  if (typeof into !== 'string') throw misuse('calls dispatchParallel without `into`. Name the aggregator state.')
  if (!isBranchPolicy(policy)) {
    const names = BRANCH_POLICIES.map((name) => `'${name}'`).join(', ')
    throw misuse(`has the policy ${JSON.stringify(policy)}. Use one of ${names}.`)
  }
  checkCount(listed.length)
  return { type: 'parallel', calls: listed.map(callOf), into, policy }
}

interface ListedCall {
  readonly given: unknown
  /** The name of the branch, for a refusal: its number without one. */
  readonly shown: string
  readonly as?: string
}

/** The calls of a fan-out, in the order of sending: a list, or an object of calls and lists of calls. */
function listedCalls(calls: unknown): readonly ListedCall[] {
  if (Array.isArray(calls)) return calls.map((given: unknown, index) => ({ given, shown: String(index) }))
  if (typeof calls !== 'object' || calls === null) {
    throw misuse('calls dispatchParallel without its calls. Give a list of calls, or an object of calls by name.')
  }
  return Object.entries(calls).flatMap(([as, given]: [string, unknown]) => {
    if (as === '' || as.length > LIMITS.identifierCharsMax) {
      throw misuse(`has a branch whose name has not from 1 to ${LIMITS.identifierCharsMax} characters. Shorten it.`)
    }
    const shown = `"${as}"`
    return Array.isArray(given) ? given.map((each: unknown) => ({ given: each, shown, as })) : [{ given, shown, as }]
  })
}

function isBranchPolicy(policy: unknown): policy is BranchPolicy {
  return (BRANCH_POLICIES as readonly unknown[]).includes(policy)
}

const NO_EVENTS_IN_FAN_OUT =
  'gives eventTransitions to a branch of a fan-out, where events are only noted. Dispatch that task on its own.'

function callOf({ given, shown, as }: ListedCall): Call {
  const call = optionsOf(given, `dispatchParallel, branch ${shown},`)
  if (call['eventTransitions'] !== undefined) throw misuse(NO_EVENTS_IN_FAN_OUT)
  const made = call['kind'] === 'child' ? childCallOf(call) : taskCallOf(call)
  return as === undefined ? made : { ...made, as }
}

/** An aggregator that says what it gathers gets just that. */
function checkBranches(action: Chosen, into: string, target: ScriptState | undefined): void {
  const gathers = target?.kind === 'aggregator' ? target.gathers : undefined
  if (gathers === undefined) return
  const names = Object.keys(gathers)
  const fix = `Use actions.dispatchParallel({ ${names.join(', ')} }, { into: '${into}' }).`
  if (action.type !== 'parallel') throw misuse(`leads to "${into}" without the branches that it gathers. ${fix}`)
  for (const { as } of action.calls) {
    if (as !== undefined && Object.hasOwn(gathers, as)) continue
    const shown = as === undefined ? 'a branch without a name' : `the branch "${as}"`
    throw misuse(`sends ${shown} into "${into}", which gathers ${names.join(', ')}. ${fix}`)
  }
  for (const [name, count] of Object.entries(gathers)) {
    const sent = action.calls.filter(({ as }) => as === name).length
    if (count === 'many' || sent === 1) continue
    throw misuse(`sends ${sent} branches "${name}" into "${into}", which gathers one. ${fix}`)
  }
}

function choiceOf(action: Chosen, { find, names }: RecorderOptions): Choice {
  const targets = new Set(targetsOf(action))
  const eventTransitions = action.type === 'task' ? action.eventTransitions : undefined
  for (const target of [...targets, ...Object.values(eventTransitions ?? {})]) {
    if (find(target) === undefined) {
      const meant = didYouMean(target, names())
      throw misuse(
        `leads to "${target}", which is not a state of this blueprint.${meant} Correct the name or add the state.`,
      )
    }
  }
  for (const target of targets) checkBranches(action, target, find(target))
  const [only = ''] = targets
  const isFanIn = targets.size === 1 && find(only)?.kind === 'aggregator'
  if (action.type === 'parallel' && !isFanIn) {
    throw misuse(`sends branches into "${only}", which is not an aggregator. Make it one with state.aggregator(…).`)
  }
  if (eventTransitions !== undefined && isFanIn) throw misuse(NO_EVENTS_IN_FAN_OUT)
  const into = action.type === 'task' && isFanIn ? only : undefined
  return { token: Object.freeze({ action: action.type }), action, into }
}

function targetsOf(action: Chosen): readonly string[] {
  switch (action.type) {
    case 'transition':
    case 'sleep':
      return [action.to]
    case 'parallel':
      return [action.into]
    default:
      return Object.values(action.transitions)
  }
}

function checkTogether(earlier: readonly Choice[], choice: Choice, name: string): void {
  const [first] = earlier
  if (first === undefined) return
  if (choice.into === undefined || choice.into !== first.into) {
    throw misuse(
      `chose an action and then calls ${name}. One action per run: return at once, or give several tasks ` +
        'transitions that all lead to one aggregator.',
    )
  }
  checkCount(earlier.length + 1)
}

function checkCount(count: number): void {
  if (count <= LIMITS.fanOutMax) return
  throw new ImpresarioError(
    'LIMIT_EXCEEDED',
    `sends out ${count} branches; at most ${LIMITS.fanOutMax} are allowed. Split the work over child jobs.`,
  )
}

/** The one action that the choices amount to. */
function actionOf(returned: unknown, choices: readonly Choice[]): Action {
  const [first] = choices
  if (first === undefined) {
    throw misuse('chose no action. Return one, such as actions.transitionTo(…), or make the state an end state.')
  }
  // As nearly always.
  if (choices.length === 1 && returned === first.token && first.into === undefined) {
    checkSize(callsOf(first.action))
    return first.action
  }
  const tokens: readonly unknown[] = Array.isArray(returned) ? returned : [returned]
  const isOurs = (token: unknown) => choices.some((choice) => choice.token === token)
  if (tokens.length === 0 || !tokens.every(isOurs)) throw misuse(notReturned(first, choices.length))
  const calls = choices.flatMap(({ action }) => callsOf(action))
  checkSize(calls)
  // One task into an aggregator is a fan-out of one: its aggregator expects results by branch.
  return first.into === undefined ? first.action : { type: 'parallel', calls, into: first.into, policy: 'wait_all' }
}

/** What to write instead; the language lets a forgotten `return` pass without a word. */
function notReturned({ action, into }: Choice, count: number): string {
  const method = METHODS[action.type]
  if (into === undefined || count === 1) {
    return `chose an action (${action.type}) but did not return it. Write \`return actions.${method}(…)\`.`
  }
  return (
    `dispatched ${count} tasks into "${into}" but did not return them. Write \`return [actions.dispatchTask(…), ` +
    `actions.dispatchTask(…)]\`, or \`return actions.dispatchParallel([…], { into: '${into}' })\`.`
  )
}

const METHODS = {
  transition: 'transitionTo',
  task: 'dispatchTask',
  parallel: 'dispatchParallel',
  human: 'awaitHumanApproval',
  child: 'runBlueprint',
  sleep: 'sleep',
  event: 'waitForEvent',
} as const

function callsOf(action: Chosen): readonly Call[] {
  if (action.type === 'parallel') return action.calls
  return action.type === 'task' || action.type === 'child' ? [action.call] : []
}

function checkSize(calls: readonly Call[]): void {
  let size = 0
  for (const call of calls) size += jsonSize(call.kind === 'task' ? call.params : call.initialData)
  // All of it is stored in the job's record at once.
  if (size <= LIMITS.bodyBytesMax) return
  throw new ImpresarioError(
    'LIMIT_EXCEEDED',
    `sends out ${size} bytes of data; at most ${LIMITS.bodyBytesMax} are allowed. Put large data into files.`,
  )
}

function misuse(sentence: string): ImpresarioError {
  return new ImpresarioError('INVALID_BLUEPRINT', sentence)
}

/** Says where it happened: user code runs in many states, and a stack alone does not name the blueprint. */
export function placed(error: unknown, { blueprint, state }: { blueprint: string; state: string }): unknown {
  if (!isImpresarioError(error)) return error
  return new ImpresarioError(error.code, `Blueprint "${blueprint}", state "${state}": ${error.message}`, {
    cause: error,
  })
}
