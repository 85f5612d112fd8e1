import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Json, TaskError } from '@impresario/protocol'
import type { Action } from './action.ts'
import { decide } from './decide.ts'
import type { Decision, Effect } from './effect.ts'
import type { EventOf, JobEvent } from './event.ts'
import { orderId, taskId, timerId, turnId } from './identity.ts'
import { contradictions, wakeUps } from './invariants.ts'
import type { WakeUpItem } from './invariants.ts'
import { isEnded } from './job.ts'
import type { Job, JobStatus } from './job.ts'
import { STATE_NAMES, aChild, aTask, fanOut, chooses, open, play, reports } from './samples.ts'
import type { Scene } from './samples.ts'

/*
 * Jobs walk at random: each step draws what happens next, mostly something that fits the job as it
 * is, at times something stale, foreign or hostile. A model of the storage follows the effects.
 */

const HOSTILE = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', ''] as const
const hostile = fc.constantFrom(...HOSTILE)
const status = fc.oneof(fc.constantFrom('success', 'failure', 'cancelled', 'timeout', 'retake'), hostile)
const state = fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...STATE_NAMES) }, { weight: 1, arbitrary: hostile })
const json = fc.oneof(
  fc.constantFrom<Json>(null, 1, 'text', [1], { a: 1 }, { render: 2 }),
  fc.constant({ ['__proto__']: { polluted: true }, constructor: 1 }),
)
const history = fc.constantFrom({}, { a: 1 }, { ['__proto__']: 1 })
const keys = fc.oneof(status, fc.constantFrom('yes', 'no', 'expired', 'finished', 'failed', 'quarantined'))
const transitions = fc
  .array(fc.tuple(keys, state), { maxLength: 6 })
  .map((pairs): Readonly<Record<string, string>> => Object.fromEntries(pairs))
const taskCall = fc
  .record(
    {
      type: fc.constantFrom('render', '__proto__'),
      attemptsMax: fc.nat(3),
      dispatchTimeoutMs: fc.nat(),
      resultTimeoutMs: fc.nat(),
      retryTimeouts: fc.boolean(),
    },
    { requiredKeys: [] },
  )
  .map((over) => aTask(over))
const childCall = fc.constantFrom('trailer', '__proto__').map((name) => aChild(name))
const calls = fc.array(fc.oneof(taskCall, taskCall, childCall), { maxLength: 4 })
const reminders = fc.record({ remindAfterMs: fc.nat(), remindEveryMs: fc.nat() }, { requiredKeys: [] })
const expiresMs = fc.option(fc.nat(), { nil: undefined })

const action: fc.Arbitrary<Action> = fc.oneof(
  state.map((to): Action => ({ type: 'transition', to })),
  fc.record({ type: fc.constant('task' as const), call: taskCall, transitions, eventTransitions: transitions }),
  fc.record({ type: fc.constant('child' as const), call: childCall, transitions }),
  fc.record({
    type: fc.constant('parallel' as const),
    calls,
    into: fc.oneof(fc.constant('gather'), state),
    policy: fc.constantFrom('wait_all' as const, 'fail_fast' as const),
  }),
  fc.tuple(transitions, expiresMs, reminders).map(([on, ms, when]): Action => {
    const human = { type: 'human', message: 'ok?', transitions: on, ...when } as const
    return ms === undefined ? human : { ...human, expiresMs: ms }
  }),
  fc
    .record({ afterMs: fc.nat(), until: fc.nat() }, { requiredKeys: [] })
    .chain((time) => state.map((to): Action => ({ type: 'sleep', ...time, to }))),
  fc.record({ timeoutMs: fc.nat(), key: fc.constantFrom('k', '__proto__') }, { requiredKeys: [] }).chain((how) =>
    transitions.map((on): Action => ({
      type: 'event',
      topic: 'paid',
      transitions: { received: 'work', ...on },
      ...how,
    })),
  ),
  json.map((result): Action => ({ type: 'end', result })),
  fc.constant<Action>({ type: 'undone' }),
)

const CODES: readonly TaskError['code'][] = [
  'TRANSIENT_ERROR',
  'PERMANENT_ERROR',
  'INVALID_INPUT_ERROR',
  'TIMEOUT_ERROR',
]

/** What is drawn for one step; `eventOf` makes an event of it that fits the job, or does not. */
const pick = fc.record({
  /** Which kind of event, counted among those that fit the job, or among all of them. */
  kind: fc.nat(1_000),
  isFitting: fc.constantFrom(true, true, true, false),
  shift: fc.constantFrom(0, 0, 0, 0, -1, 1),
  attemptShift: fc.constantFrom(0, 0, 0, 0, -1, 1),
  branch: fc.oneof({ weight: 5, arbitrary: fc.nat(3).map(String) }, { weight: 1, arbitrary: hostile }),
  status,
  code: fc.option(fc.constantFrom(...CODES), { nil: undefined }),
  data: fc.option(json, { nil: undefined }),
  decision: keys,
  action,
  history,
  outcome: fc.constantFrom('finished', 'failed', 'cancelled', 'error', 'quarantined'),
  worker: fc.constantFrom('w1', 'w2'),
  state,
  chance: fc.double({ min: 0, max: 1, noNaN: true }),
})
type Draw = typeof pick extends fc.Arbitrary<infer P> ? P : never

const TYPES: readonly JobEvent['type'][] = [
  'turnBegun',
  'turnTaken',
  'turnFailed',
  'taskEnded',
  'taskExpired',
  'taskAbandoned',
  'progressed',
  'eventRaised',
  'childEnded',
  'decisionMade',
  'approvalExpired',
  'reminderDue',
  'sleepEnded',
  'eventSent',
  'eventWaitExpired',
  'cancelled',
  'timeRanOut',
  'retried',
  'discarded',
  'migrated',
  'stranded',
  'created',
]

const FITTING: Partial<Record<JobStatus, readonly JobEvent['type'][]>> = {
  pending: ['turnTaken', 'turnTaken', 'turnTaken', 'turnFailed'],
  running: ['turnTaken', 'turnTaken', 'turnTaken', 'turnFailed', 'turnBegun'],
  waiting_for_worker: ['taskEnded', 'taskEnded', 'taskExpired', 'progressed', 'eventRaised', 'taskAbandoned'],
  waiting_for_parallel: ['taskEnded', 'taskEnded', 'childEnded', 'taskExpired', 'eventRaised', 'taskAbandoned'],
  waiting_for_child: ['childEnded'],
  waiting_for_human: ['decisionMade', 'decisionMade', 'approvalExpired', 'reminderDue'],
  waiting_for_time: ['sleepEnded', 'eventSent'],
  waiting_for_event: ['eventSent', 'eventSent', 'eventWaitExpired'],
  quarantined: ['retried', 'retried', 'discarded'],
}

function eventOf(job: Job, drawn: Draw): JobEvent {
  const fitting = drawn.isFitting ? FITTING[job.status] : undefined
  const types = fitting ?? TYPES
  const type = types[drawn.kind % types.length] ?? 'cancelled'
  return makeEvent(type, job, drawn)
}

function makeEvent(type: JobEvent['type'], job: Job, drawn: Draw): JobEvent {
  const { status: said, code, data, chance, worker: workerId, decision, history: stateHistory } = drawn
  const at = job.updatedAt + 1
  const visit = job.visit + drawn.shift
  const { branch } = drawn
  const known = Object.hasOwn(job.branches, branch) ? job.branches[branch] : undefined
  const ref = { at, visit, branch, attempt: (known?.attempt ?? 1) + drawn.attemptShift }
  const error = code === undefined ? undefined : { code, message: 'drawn' }
  switch (type) {
    case 'created':
      return { type, at, id: job.id, request: { blueprint: 'film', client: { id: 'eve' }, initialData: {} } }
    case 'turnBegun':
      return { type, at, visit, token: 7, begunMax: 2, lostMax: 3, hasReturned: chance < 0.5 }
    case 'turnTaken':
      return { type, at, visit, action: drawn.action, stateHistory }
    case 'turnFailed':
      return { type, at, visit, message: 'thrown', chance }
    case 'taskEnded':
      return { type, ...ref, workerId, status: said, data, error, chance }
    case 'taskExpired':
      return { type, ...ref, wasTaken: code !== undefined, workerId, chance }
    case 'taskAbandoned':
      return { type, ...ref, deliveries: 10 }
    case 'progressed':
      return { type, ...ref, fraction: chance }
    case 'metered':
      return { type, ...ref, usage: { usd: chance, tokens: 1, seconds: 0 }, eventId: said }
    case 'childEnded':
      return { type, at, visit, branch, outcome: drawn.outcome, result: data }
    case 'eventRaised':
      return { type, ...ref, workerId, name: decision, payload: stateHistory, eventId: said === '' ? undefined : said }
    case 'decisionMade':
      return { type, at, decision, by: 'bob', ...(code === undefined ? {} : { visit }) }
    case 'approvalExpired':
    case 'reminderDue':
    case 'sleepEnded':
    case 'eventWaitExpired':
      return { type, at, visit }
    case 'eventSent':
      return sentEvent(job, drawn)
    case 'cancelled':
    case 'discarded':
      return { type, at, by: 'ann' }
    case 'timeRanOut':
      return { type, at }
    case 'retried':
      return { type, at, by: 'bob', stateHistory }
    case 'migrated':
      return { type, at, version: 4, state: drawn.state, stateHistory }
    case 'stranded':
      return { type, at, error: { code: 'BLUEPRINT_GONE', message: 'gone', state: job.state } }
  }
}

function sentEvent({ updatedAt, visit }: Job, drawn: Draw): JobEvent {
  const at = updatedAt + 1
  const topic = drawn.code === undefined ? 'paid' : 'other'
  const event = { id: `${drawn.status}${drawn.branch}`, topic, payload: drawn.history, at }
  return { type: 'eventSent', at, event, ...(drawn.isFitting ? {} : { visit: visit + drawn.shift }) }
}

/** What the storage would hold for the job: removals first, then what is new, as in one batch. */
type Items = ReadonlyMap<string, Json>

function commit(items: Items, event: JobEvent, { job, effects }: Omit<Decision, 'type' | 'entries'>): Items {
  const next = new Map(items)
  if (event.type === 'turnTaken' || event.type === 'turnFailed') next.delete(`turns ${turnId(job.id)}`)
  for (const effect of effects) {
    if (effect.type === 'dropTask') next.delete(`tasks ${taskId(job.id, effect.visit, effect.branch)}`)
    if (effect.type === 'unlisten') next.delete(`listener ${effect.visit}`)
    if (effect.type === 'dropTimer') next.delete(`timers ${timerId(job.id, effect.timer)}`)
  }
  for (const effect of effects) {
    const item = itemOf(job, effect)
    if (item !== undefined) next.set(...item)
  }
  return next
}

function itemOf(job: Job, effect: Effect): [string, Json] | undefined {
  const { id: jobId } = job
  switch (effect.type) {
    case 'turn':
      return [`turns ${turnId(jobId)}`, { visit: effect.visit }]
    case 'task': {
      const { visit, branch, attempt, call } = effect
      return [`tasks ${taskId(jobId, visit, branch)}`, { jobId, visit, branch, attempt, type: call.type }]
    }
    case 'timer':
      return [`timers ${timerId(jobId, effect.timer)}`, { jobId, timer: effect.timer, visit: effect.visit }]
    case 'mail':
      return [`mail ${effect.letterId}`, { to: effect.to, type: effect.letter.type }]
    case 'webhook':
      return [`outbox ${effect.messageId}`, { event: effect.event }]
    case 'listen':
      return [`listener ${effect.visit}`, effect.key]
    case 'unlisten':
    case 'dropTask':
    case 'dropTimer':
      return undefined
  }
}

const keyOf = ({ queue, id }: WakeUpItem): string => `${queue} ${id}`

/** J2, against the model of the storage: everything that must be there is there, and no task or timer beside it. */
function checkItems(job: Job, items: Items): void {
  const needed = wakeUps(job)
  const all = [...needed.items, ...needed.timers]
  for (const item of all) expect(items.get(keyOf(item))).toMatchObject(item.payload)
  const kept = [...items.keys()].filter((key) => key.startsWith('tasks ') || key.startsWith('timers '))
  expect(kept.sort()).toEqual(
    all
      .filter(({ queue }) => queue !== 'turns')
      .map(keyOf)
      .sort(),
  )
  const listeners = [...items.keys()].filter((key) => key.startsWith('listener '))
  const isListening = job.wait?.kind === 'event' && job.wait.key !== undefined
  expect(listeners).toEqual(isListening ? [`listener ${job.visit}`] : [])
  for (const { jobId, letters } of needed.children) {
    expect(letters).toContain(orderId(jobId))
    expect(items.get(`mail ${orderId(jobId)}`)).toEqual({ to: jobId, type: 'create' })
  }
}

/** Events that end something: they count once. */
const ENDINGS: ReadonlySet<JobEvent['type']> = new Set([
  'turnTaken',
  'taskEnded',
  'taskExpired',
  'taskAbandoned',
  'childEnded',
  'approvalExpired',
  'sleepEnded',
  'eventSent',
  'eventWaitExpired',
  'retried',
])

function checkStep(scene: Scene, event: JobEvent, decision: Decision): void {
  const { job: before } = scene
  const { job, effects } = decision
  expect(isEnded(before)).toBe(false) // J1
  expect(contradictions(job)).toEqual([])
  expect(job.id).toBe(before.id)
  // A state that ends the job may be entered and something be undone in one step.
  expect(job.visit - before.visit).toBeOneOf(job.compensation === undefined ? [0, 1] : [0, 1, 2])
  for (const effect of effects) if (effect.type === 'mail') expect(effect.to).not.toBe(job.id) // J6
  checkNews(before, decision)
  if ('visit' in event && event.visit !== undefined) expect(event.visit).toBe(before.visit) // J3, J4
  if ('attempt' in event) expect(before.branches[event.branch]?.attempt).toBe(event.attempt) // J3
  const isRepeatable = event.type === 'childEnded' && event.outcome === 'quarantined'
  if (ENDINGS.has(event.type) && !isRepeatable) expect(decide(scene.script, job, event).type).toBe('ignored')
  expect(Object.getPrototypeOf(job.stateHistory)).toBe(Object.prototype)
}

/** Whoever gave a webhook hears of every end and of every quarantine, and of nothing twice. */
function checkNews(before: Job, { job, effects }: Decision): void {
  const news = effects.filter((effect) => effect.type === 'webhook')
  const isOver = isEnded(job) || (job.status === 'quarantined' && before.status !== 'quarantined')
  if (job.webhookUrl === undefined) expect(news).toEqual([])
  else if (isOver) expect(news.filter(({ event }) => event === `job_${job.status}`)).toHaveLength(1)
  expect(new Set(news.map(({ messageId }) => messageId)).size).toBe(news.length)
}

interface Opening {
  readonly executionTimeoutMs: number | undefined
  readonly webhookUrl: string | undefined
  readonly isChild: boolean
  readonly depth: number
}

const opening: fc.Arbitrary<Opening> = fc.record({
  executionTimeoutMs: fc.option(fc.nat(), { nil: undefined }),
  webhookUrl: fc.constantFrom(undefined, 'https://hear.example/me'),
  isChild: fc.boolean(),
  depth: fc.constantFrom(0, 0, 0, 16),
})

/** Walks, checks every step, and says which statuses it came through. */
function walk({ isChild, ...request }: Opening, picks: readonly Draw[]): readonly JobStatus[] {
  const parent = isChild ? { jobId: 'p', visit: 1, branch: '0' } : undefined
  let scene = open({ ...request, parent }, { transitionsMax: 6, handlerAttemptsMax: 2, taskAttemptsMax: 2 })
  let items = commit(new Map(), { type: 'timeRanOut', at: 0 }, scene)
  const seen: JobStatus[] = [scene.job.status]
  for (const drawn of picks) {
    const event = eventOf(scene.job, drawn)
    const after = play(scene, () => event)
    expect(decide(scene.script, scene.job, event)).toEqual(decide(scene.script, scene.job, event))
    if (after.ignored === undefined) {
      checkStep(scene, event, { type: 'decided', ...after })
      items = commit(items, event, after)
      checkItems(after.job, items)
    }
    // What is ignored changes nothing.
    expect(after.ignored === undefined || (after.job === scene.job && after.effects.length === 0)).toBe(true)
    scene = after
    seen.push(scene.job.status)
  }
  return seen
}

const walks = fc.tuple(opening, fc.array(pick, { minLength: 1, maxLength: 25, size: 'max' }))

test('[C-09] [C-05] whatever happens to a job, in whatever order: the rules hold after every step', () => {
  fc.assert(
    fc.property(walks, ([begin, picks]) => {
      expect(walk(begin, picks)).toHaveLength(picks.length + 1)
    }),
    { numRuns: 500 },
  )
})

test('[B-09] the walks come through every status, so that they prove something', () => {
  const seen = new Set(fc.sample(walks, { seed: 7, numRuns: 300 }).flatMap(([begin, picks]) => walk(begin, picks)))
  const endings = ['cancelled', 'failed', 'finished', 'quarantined']
  const waits = [
    'waiting_for_child',
    'waiting_for_event',
    'waiting_for_human',
    'waiting_for_parallel',
    'waiting_for_time',
    'waiting_for_worker',
  ]
  expect([...seen].sort()).toEqual([...endings, 'pending', 'running', ...waits].sort())
})

/** One end for each branch of a fan-out, after some failed tries, in any order. */
const branches = fc
  .array(
    fc.record({ fails: fc.nat(2), status: fc.constantFrom('success', 'odd', 'cancelled'), isChild: fc.boolean() }),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  .chain((plan) => {
    const steps = plan.flatMap(({ fails }, index) => Array.from({ length: fails + 1 }, () => index))
    return fc.tuple(fc.constant(plan), fc.shuffledSubarray(steps, { minLength: steps.length }))
  })

test('[A-05] [B-08] the aggregator is entered once, with each branch exactly once, in whatever order they end', () => {
  fc.assert(
    fc.property(branches, ([plan, order]) => {
      let scene = play(open(), chooses(fanOut(...plan.map(({ isChild }) => (isChild ? aChild() : aTask())))))
      let entered = 0
      const left = plan.map(({ fails }) => fails)
      for (const index of order) {
        expect(scene.job.status).toBe('waiting_for_parallel')
        scene = play(scene, (job) => branchEvent(job, index, plan[index], left))
        if (scene.job.state === 'gather') entered += 1
      }
      expect(entered).toBe(1)
      expect(Object.keys(scene.job.aggregationResults ?? {}).sort()).toEqual(
        plan.map((_, index) => taskId('j', 1, String(index))).sort(),
      )
    }),
  )
})

function branchEvent(
  job: Job,
  index: number,
  planned: { readonly status: string; readonly isChild: boolean } | undefined,
  left: number[],
): JobEvent {
  const branch = String(index)
  const isLast = left[index] === 0
  left[index] = (left[index] ?? 0) - 1
  if (planned?.isChild !== true) return reports(isLast ? (planned?.status ?? '') : 'failure', { branch })(job)
  const outcome: EventOf<'childEnded'>['outcome'] = isLast ? 'finished' : 'quarantined'
  return { type: 'childEnded', at: job.updatedAt, visit: job.visit, branch, outcome }
}
