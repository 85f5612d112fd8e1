import { isoInstant, jsonObjectCopy, jsonSize, POLICY_DEFAULTS, wallTime } from '@impresario/core'
import type {
  Action,
  Call,
  Clock,
  Job,
  Random,
  RunnableBlueprint,
  ScriptState,
  TaskCall,
  TurnInput,
  TurnOutput,
} from '@impresario/core'
import type { BlueprintSource } from '@impresario/engine'
import { LIMITS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import type { RunRetry } from '../automation/definition.ts'
import { advance } from '../run/machine.ts'
import type { Advanced } from '../run/machine.ts'
import { BEGINNING } from '../run/progress.ts'
import type { Command, StepError } from '../run/progress.ts'
import { secretNamesIn } from '../run/secrets.ts'
import { isFinal, outcomeOf } from './run-outcome.ts'
import { automationOf, PART_BLUEPRINT, runStateOf, startData, startOf, stateData } from './run-start.ts'
import type { RunStart, RunState } from './run-start.ts'

/** How a tool is called: as a task, as a child job, or by the run itself when it only waits. */
export type ToolRoute =
  | { readonly kind: 'task'; readonly type: string; readonly timeoutMs: number | undefined }
  | { readonly kind: 'child'; readonly blueprint: string }
  | { readonly kind: 'sleep'; readonly ms: (input: JsonObject) => number }

export interface RunBlueprintOptions {
  readonly clock: Clock
  readonly random: Random
  /** `undefined` when there is no such tool any more. */
  readonly route: (tool: string) => ToolRoute | undefined
  /** The scopes that a tool needs and this owner does not have now: they may have changed since the automation was written. */
  readonly missingScopes: (tool: string, owner: string) => readonly string[] | Promise<readonly string[]>
}

const STEP = 'step'
const STATES: ReadonlyMap<string, ScriptState> = new Map<string, ScriptState>([
  // Results of an aggregator are kept apart from the state history, which belongs to the run alone.
  [STEP, { kind: 'aggregator' }],
  ['done', { kind: 'end', outcome: 'finished', computes: true }],
  ['failed', { kind: 'end', outcome: 'failed', computes: true }],
])
const VERSION = 1

/**
 * The blueprint of all runs: one state, which is visited once for each step. What a run does was decided when it was
 * created; this only carries out what `advance` says, so a run that was interrupted goes on where it stood.
 */
function runBlueprint(name: string, options: RunBlueprintOptions): RunnableBlueprint {
  return {
    name,
    version: VERSION,
    isInternal: true,
    kin: options,
    start: STEP,
    state: (state) => STATES.get(state),
    policy: { ...POLICY_DEFAULTS, transitionsMax: LIMITS.transitionsMaxCeiling },
    nodes: [
      { name: STEP, kind: 'aggregator', isStart: true, links: [{ to: 'done' }, { to: 'failed' }], isDynamic: true },
      { name: 'done', kind: 'end', isStart: false, outcome: 'finished', links: [] },
      { name: 'failed', kind: 'end', isStart: false, outcome: 'failed', links: [] },
    ],
    perform: async ({ job }: TurnInput): Promise<TurnOutput> => turnOf(job, options),
    validateInput: async (data) => ({ value: data }),
    migrate: () => undefined,
  }
}

/** Blueprints of users, and beside them those of runs. */
export function withRuns(source: BlueprintSource, options: RunBlueprintOptions): BlueprintSource {
  const part = runBlueprint(PART_BLUEPRINT, options)
  const find = (name: string): RunnableBlueprint | undefined => {
    if (name === PART_BLUEPRINT) return part
    return automationOf({ blueprint: name }) === undefined ? undefined : { ...part, name }
  }
  return {
    get: (name, version) => find(name) ?? source.get(name, version),
    latest: (name) => find(name) ?? source.latest(name),
    list: () => source.list?.() ?? [],
  }
}

/** A promise only where one is needed: what is answered at once is part of the commit before it. */
type Soon<T> = T | Promise<T>

function turnOf(job: Job, options: RunBlueprintOptions): Soon<TurnOutput> {
  if (job.state !== STEP) return { action: { type: 'end', result: resultOf(job) }, stateHistory: job.stateHistory }
  const start = startOf(job)
  const state = runStateOf(job)
  const at = isoInstant(wallTime(options.clock))
  const { pending } = state.progress
  const outcome = pending === undefined ? undefined : outcomeOf(job, pending, state.sleeping === true)
  const around = { at, random: () => options.random.next(), secretNames: secretNamesIn(start.input.pipeline) }
  const input = { ...start.input, run: { ...start.input.run, attempt: state.attempt } }
  const advanced = advance(input, state.progress, outcome, around)
  const next: RunState = { attempt: state.attempt, attempts: state.attempts, progress: advanced.progress }
  const turn = { job, start, state: next, at }
  const output = outputOf(turn, advanced, options)
  const bounded = (one: TurnOutput): TurnOutput => {
    if (jsonSize(one.stateHistory) <= LIMITS.contextBytesMax) return one
    const message = `The steps of a run may keep ${LIMITS.contextBytesMax} bytes together. Let a step pick what later steps need.`
    return ended({ ...turn, state }, 'failed', { code: 'LIMIT_EXCEEDED', message })
  }
  return output instanceof Promise ? output.then(bounded) : bounded(output)
}

interface Turn {
  readonly job: Job
  readonly start: RunStart
  readonly state: RunState
  readonly at: string
}

function outputOf(turn: Turn, { command, progress }: Advanced, options: RunBlueprintOptions): Soon<TurnOutput> {
  const { state } = turn
  switch (command.do) {
    case 'call':
      return allowed(turn, command, options)
    case 'ask':
      return { action: question(command), stateHistory: stateData(state) }
    case 'wait':
      return { action: { type: 'sleep', afterMs: command.ms, to: STEP }, stateHistory: stateData(state) }
    case 'parts': {
      const calls = command.parts.map(({ input }): Call => {
        return { kind: 'child', blueprint: PART_BLUEPRINT, initialData: startData({ input }) }
      })
      return { action: parallel(calls), stateHistory: stateData(state) }
    }
    case 'end': {
      const { status, error, output } = command
      const again = error === undefined ? undefined : repetition(turn, error, options)
      return again ?? ended({ ...turn, state: { ...state, progress, output } }, status, error)
    }
  }
}

/** A run that failed begins again after a pause, with all that is on record of the attempt before. */
function repetition(
  { start, state, at }: Turn,
  error: StepError,
  options: RunBlueprintOptions,
): TurnOutput | undefined {
  const { retry } = start
  const { attempt, attempts, progress } = state
  if (retry === undefined || attempt > retry.maxRetries || isFinal(error)) return undefined
  const failed = { attempt, records: progress.records, error, endedAt: at }
  const next: RunState = { attempt: attempt + 1, attempts: [...attempts, failed], progress: start.begins ?? BEGINNING }
  const afterMs = pauseMs(retry, attempt, options.random.next())
  return { action: { type: 'sleep', afterMs, to: STEP }, stateHistory: stateData(next) }
}

function pauseMs({ backoff, initialSeconds, maxSeconds }: RunRetry, attempt: number, chance: number): number {
  const grown = backoff === 'fixed' ? 1 : backoff === 'linear' ? attempt : 2 ** (attempt - 1)
  const ms = Math.min(initialSeconds * grown, maxSeconds) * 1_000
  return Math.round(backoff === 'exponential_jitter' ? ms * (0.5 + chance / 2) : ms)
}

/** The scopes of the owner are looked at for each call: an agent that has lost one runs the tool no more. */
function allowed(turn: Turn, command: ToolCommand, options: RunBlueprintOptions): Soon<TurnOutput> {
  const { tool } = command
  const owner = turn.job.client.id
  const judged = (missing: readonly string[]): TurnOutput => {
    if (missing.length === 0) return called(turn, command, options)
    const message = `The tool "${tool}" needs the scope ${missing.join(', ')}, which the agent ${owner} does not have any more. Give it the scope, or change the automation.`
    return ended(turn, 'failed', { code: 'SCOPE_MISSING', message })
  }
  const missing = options.missingScopes(tool, owner)
  return missing instanceof Promise ? missing.then(judged) : judged(missing)
}

type ToolCommand = Extract<Command, { do: 'call' }>

function called(turn: Turn, command: ToolCommand, options: RunBlueprintOptions): TurnOutput {
  const { state } = turn
  const { tool, timeoutSeconds } = command
  const route = options.route(tool)
  const input = jsonObjectCopy(command.input, 'The input')
  if (route === undefined) {
    const message = `There is no tool "${tool}" any more. Change the automation, or bring the tool back.`
    return ended(turn, 'failed', { code: 'TOOL_GONE', message })
  }
  switch (route.kind) {
    case 'sleep':
      return {
        action: { type: 'sleep', afterMs: route.ms(input), to: STEP },
        stateHistory: stateData({ ...state, sleeping: true }),
      }
    case 'child': {
      const call: Call = { kind: 'child', blueprint: route.blueprint, initialData: input }
      return { action: parallel([call]), stateHistory: stateData(state) }
    }
    case 'task': {
      const runTimeoutMs = timeoutSeconds === undefined ? route.timeoutMs : timeoutSeconds * 1_000
      const call: TaskCall = {
        kind: 'task',
        type: route.type,
        params: input,
        priority: turn.job.priority,
        strategy: 'default',
        // The step says how often it is tried, and a run has a record of each attempt.
        attemptsMax: 1,
        ...(runTimeoutMs === undefined ? {} : { runTimeoutMs: Math.ceil(runTimeoutMs) }),
      }
      return { action: parallel([call]), stateHistory: stateData(state) }
    }
  }
}

function parallel(calls: readonly Call[]): Action {
  return { type: 'parallel', calls, into: STEP, policy: 'wait_all' }
}

function question({ message, decisions, expiresSeconds }: Extract<Command, { do: 'ask' }>): Action {
  const ways = expiresSeconds === undefined ? decisions : [...decisions, 'expired']
  return {
    type: 'human',
    message,
    transitions: Object.fromEntries(ways.map((way) => [way, STEP])),
    ...(expiresSeconds === undefined ? {} : { expiresMs: expiresSeconds * 1_000 }),
  }
}

/** A part always finishes: whether it failed is up to the run that it belongs to. */
function ended(turn: Turn, status: 'succeeded' | 'failed', error: StepError | undefined): TurnOutput {
  const { state, start } = turn
  const isPart = start.retry === undefined
  const whole: RunState = { ...state, status, ...(error === undefined ? {} : { error }) }
  const to = status === 'succeeded' || isPart ? 'done' : 'failed'
  return { action: { type: 'transition', to }, stateHistory: stateData(whole) }
}

function resultOf(job: Job): JsonObject {
  const { status = 'failed', output = null, error } = runStateOf(job)
  return jsonObjectCopy({ status, output, error: error ?? null }, 'The result')
}
