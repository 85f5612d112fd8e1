import type { Log } from '../ports/runtime.ts'
import type { JsonObject, Soon, TaskFiles } from '@impresario/protocol'
import type { Action } from '../job/action.ts'
import type { Job } from '../job/job.ts'
import type { Script, ScriptPolicy } from './script.ts'

/** Where a state can lead, as far as it is known without running it. */
export interface StateLink {
  readonly to: string
  /** The status, decision or condition that leads there, for the graph. */
  readonly label?: string
  /** The branches of a fan-out meet there, so it has to be an aggregator. */
  readonly isFanIn?: boolean
}

/** What a state hands out: a task, a child, a question to a person. */
export interface StateCall {
  readonly kind: 'task' | 'child' | 'person'
  /** As it stands in the code: a type, or the name of a contract or a blueprint. */
  readonly name: string
}

export interface StateNode {
  readonly name: string
  readonly kind: 'handler' | 'aggregator' | 'end'
  readonly isStart: boolean
  readonly outcome?: string
  readonly links: readonly StateLink[]
  /** It also chooses targets while it runs, so `links` is not all of them. */
  readonly isDynamic?: boolean
  /** What it does can be undone. */
  readonly hasUndo?: boolean
  /** What it waits for beside tasks, children and people, for the graph: `after 3d`. */
  readonly waits?: readonly string[]
  /** What it hands out, as far as its code shows it, for the graph. */
  readonly calls?: readonly StateCall[]
}

export interface TurnInput {
  readonly job: Job
  /** Aborts when the handler's time is up or the job is cancelled. */
  readonly signal: AbortSignal
  /** The files of the job. Nothing: whoever runs the handler keeps none. */
  readonly files?: TaskFiles | undefined
  /** Where the handler's lines go; without it they go nowhere. */
  readonly log?: Log | undefined
  /** Large values of the state history are kept apart from the record. */
  readonly offloads?: boolean | undefined
}

export interface TurnOutput {
  readonly action: Action
  /** The state history as the handler left it. */
  readonly stateHistory: JsonObject
}

/** What a job must change to go on under a newer version of its blueprint. */
export interface Migration {
  readonly state: string
  readonly stateHistory: JsonObject
}

/** A blueprint as the engine uses it: the script for the rules, and the user's code to run. */
export interface RunnableBlueprint extends Script {
  readonly nodes: readonly StateNode[]
  /** Only parts of the orchestrator start it; for clients it is not there. */
  readonly isInternal?: boolean
  /** The same for all blueprints that run the same code under other names: what is learned of one holds for all of them. */
  readonly kin?: object
  /** What of the policy the blueprint says itself; the rest are defaults, which a program may replace. Without it: all. */
  readonly ownPolicy?: Partial<ScriptPolicy>
  /** The path under which clients start it, when the blueprint names one. */
  readonly endpoint?: string
  /** The first part of that path, such as `v2`; the server’s own version without it. */
  readonly apiVersion?: string
  /** Runs the handler of the job's state. Throws, or rejects with, whatever user code threw. */
  perform(input: TurnInput): Soon<TurnOutput>
  /** The JSON Schema of its input; empty where its schema cannot say it. */
  readonly inputSchema?: Readonly<Record<string, unknown>>
  /** Returns what the input schema makes of the data, or what is wrong with it, one sentence per problem. */
  validateInput(data: JsonObject): Soon<{ readonly value: JsonObject } | { readonly problems: readonly string[] }>
  /** The events that its jobs may be sent, if it declares any. */
  readonly topics?: readonly string[]
  /** Returns what the event's schema makes of its payload, or what is wrong with it. Without it: anything goes. */
  validateEvent?(
    topic: string,
    payload: JsonObject,
  ): Soon<{ readonly value: JsonObject } | { readonly problems: readonly string[] }>
  /** How a job that began under an older version goes on under this one; `undefined` when it cannot. */
  migrate(job: Job): Migration | undefined
}
