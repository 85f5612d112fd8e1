import type { Json, JsonObject, TaskError } from '@impresario/protocol'
import type { Script, ScriptPolicy, ScriptState } from '../blueprint/script.ts'
import type { Action } from './action.ts'
import { decide } from './decide.ts'
import type { Decision, IgnoredReason } from './effect.ts'
import type { EventOf, JobEvent, JobRequest } from './event.ts'
import type { ChildCall, Job, SentEvent, TaskCall, Transitions } from './job.ts'

/** Material for the tests of this folder: a small blueprint, and cues that say what happens to its job next. */
const STATES: ReadonlyMap<string, ScriptState> = new Map<string, ScriptState>([
  ['start', { kind: 'handler' }],
  ['charge', { kind: 'handler', hasUndo: true }],
  ['book', { kind: 'handler', hasUndo: true }],
  ['work', { kind: 'handler' }],
  ['review', { kind: 'handler' }],
  ['gather', { kind: 'aggregator' }],
  ['regather', { kind: 'aggregator' }],
  ['done', { kind: 'end', outcome: 'finished', computes: false }],
  ['total', { kind: 'end', outcome: 'finished', computes: true }],
  ['aborted', { kind: 'end', outcome: 'cancelled', computes: false }],
  ['failed', { kind: 'end', outcome: 'failed', computes: false }],
])
export const STATE_NAMES: readonly string[] = [...STATES.keys()]

const POLICY: ScriptPolicy = {
  transitionsMax: 100,
  handlerAttemptsMax: 3,
  taskAttemptsMax: 3,
  backoffMs: 1_000,
  backoffMsMax: 60_000,
  runTimeoutMs: 300_000,
}

export function aScript(policy: Partial<ScriptPolicy> = {}): Script {
  return {
    name: 'film',
    version: 3,
    start: 'start',
    state: (name) => STATES.get(name),
    policy: deepFreeze({ ...POLICY, ...policy }),
  }
}

export function aTask(over: Partial<TaskCall> = {}): TaskCall {
  return { kind: 'task', type: 'render', params: {}, priority: 0, strategy: 'default', ...over }
}

export function aChild(blueprint = 'trailer'): ChildCall {
  return { kind: 'child', blueprint, initialData: { scene: 1 } }
}

export const task = (transitions: Transitions, call: Partial<TaskCall> = {}): Action => ({
  type: 'task',
  call: aTask(call),
  transitions,
})
export const child = (transitions: Transitions): Action => ({ type: 'child', call: aChild(), transitions })
export const goTo = (to: string): Action => ({ type: 'transition', to })
export const fanOut = (...calls: readonly (TaskCall | ChildCall)[]): Action => ({
  type: 'parallel',
  calls,
  into: 'gather',
  policy: 'wait_all',
})
type HumanAction = Extract<Action, { type: 'human' }>
export const approval = (transitions: Transitions, expiresMs?: number, over: Partial<HumanAction> = {}): Action => ({
  type: 'human',
  message: 'Is it good?',
  transitions,
  ...(expiresMs === undefined ? {} : { expiresMs }),
  ...over,
})

export const sleep = (time: { afterMs?: number; until?: number }, to = 'work'): Action => ({
  type: 'sleep',
  ...time,
  to,
})

const ON_RECEIPT: Transitions = { received: 'work' }

export const awaits = (
  topic: string,
  transitions: Transitions = ON_RECEIPT,
  over: { timeoutMs?: number; key?: string } = {},
): Action => ({ type: 'event', topic, transitions, ...over })

/** What came of the newest event. Nothing follows from one that was ignored. */
export interface Scene extends Omit<Decision, 'type'> {
  readonly script: Script
  readonly ignored: IgnoredReason | undefined
}

/** Makes the next event from the job as it is. */
export type Cue = (job: Job) => JobEvent

export function open(request: Partial<JobRequest> = {}, policy: Partial<ScriptPolicy> = {}): Scene {
  const script = aScript(policy)
  const whole: JobRequest = { blueprint: 'film', client: { id: 'ann' }, initialData: { title: 'x' }, ...request }
  const created = { type: 'created', at: 1_000, id: 'j', request: deepFreeze(whole) } as const
  return { script, ...newJob(script, created), ignored: undefined }
}

/** Boundary: the creation of a job that is not there yet is never ignored. */
function newJob(script: Script, created: EventOf<'created'>): Decision {
  return decide(script, undefined, created) as Decision
}

/** Plays the cues one after another and shows the last one's scene. Everything is frozen: `decide` may change nothing. */
export function play(scene: Scene, ...cues: readonly Cue[]): Scene {
  let last = scene
  for (const cue of cues) {
    const job = deepFreeze(last.job)
    const decision = decide(scene.script, job, deepFreeze(cue(job)))
    last =
      decision.type === 'decided'
        ? { ...decision, script: scene.script, ignored: undefined }
        : { script: scene.script, job, effects: [], entries: decision.entries, ignored: decision.reason }
  }
  return last
}

/** A scene's script, exchanged: the job goes on under another version or another policy. */
export function under(scene: Scene, policy: Partial<ScriptPolicy>): Scene {
  return { ...scene, script: aScript(policy) }
}

const at = (job: Job): number => job.updatedAt + 1_000

export const chooses =
  (action: Action, stateHistory?: JsonObject): Cue =>
  (job) => ({
    type: 'turnTaken',
    at: at(job),
    visit: job.visit,
    action,
    stateHistory: stateHistory ?? job.stateHistory,
  })

export const throws =
  (message: string, stack?: string): Cue =>
  (job) => ({ type: 'turnFailed', at: at(job), visit: job.visit, message, stack, chance: 0.5 })

type TaskEnd = Partial<EventOf<'taskEnded'>>

/** A worker reports on the present try of a branch, the first one unless said otherwise. */
export const reports =
  (status: string, over: TaskEnd = {}): Cue =>
  (job) => ({
    type: 'taskEnded',
    at: at(job),
    workerId: 'w1',
    status,
    chance: 0.5,
    visit: job.visit,
    branch: '0',
    attempt: job.branches[over.branch ?? '0']?.attempt ?? 1,
    ...over,
  })

export const failsWith = (code: TaskError['code'], over: TaskEnd = {}): Cue =>
  reports('failure', { error: { code, message: 'no light' }, ...over })

export const expires =
  (wasTaken: 'untaken' | 'taken', over: Partial<EventOf<'taskExpired'>> = {}): Cue =>
  (job) => ({
    type: 'taskExpired',
    at: at(job),
    wasTaken: wasTaken === 'taken',
    chance: 0.5,
    visit: job.visit,
    branch: '0',
    attempt: job.branches['0']?.attempt ?? 1,
    ...over,
  })

/** A handler is about to run again after a run that ended without a word. */
export const begins =
  (begunMax = 2, shift = 0, hasReturned = false): Cue =>
  (job) => ({ type: 'turnBegun', at: at(job), visit: job.visit + shift, token: 7, begunMax, lostMax: 2, hasReturned })

export const falls: Cue = (job) => ({
  type: 'taskAbandoned',
  at: at(job),
  deliveries: 10,
  visit: job.visit,
  branch: '0',
  attempt: 1,
})

/** A worker says something about the present try of a branch. */
export const says =
  (name: string, over: Partial<EventOf<'eventRaised'>> = {}): Cue =>
  (job) => ({
    type: 'eventRaised',
    at: at(job),
    workerId: 'w1',
    name,
    payload: {},
    visit: job.visit,
    branch: '0',
    attempt: job.branches[over.branch ?? '0']?.attempt ?? 1,
    ...over,
  })

export const childEnds =
  (outcome: EventOf<'childEnded'>['outcome'], result?: Json, over: Partial<EventOf<'childEnded'>> = {}): Cue =>
  (job) => ({ type: 'childEnded', at: at(job), visit: job.visit, branch: '0', outcome, result, ...over })

export const decides =
  (decision: string, comment?: string, visit?: number): Cue =>
  (job) => ({ type: 'decisionMade', at: at(job), decision, by: 'bob', comment, visit })

/** An event from outside. */
export const sends =
  (topic: string, over: Partial<SentEvent> = {}, visit?: number): Cue =>
  (job) => ({
    type: 'eventSent',
    at: at(job),
    event: { id: 'e1', topic, payload: { n: 1 }, at: at(job), ...over },
    ...(visit === undefined ? {} : { visit }),
  })

/** An event that needs nothing but its own fields. */
export const happens =
  (event: DistributiveOmit<JobEvent, 'at'>): Cue =>
  (job) => ({ at: at(job), ...event })

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

export const cancels: Cue = happens({ type: 'cancelled', by: 'ann' })
export const retries: Cue = happens({ type: 'retried', by: 'bob' })

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const part of Object.values(value)) deepFreeze(part)
  return Object.freeze(value)
}
