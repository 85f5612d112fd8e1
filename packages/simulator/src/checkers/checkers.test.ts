import { LIMITS } from '@impresario/protocol'
import { blueprint, decide } from '@impresario/core'
import type { Job } from '@impresario/core'
import { expect, test } from 'vitest'
import type { Entry, Version } from '../chronicle.ts'
import {
  accounted,
  countsOnce,
  durable,
  endsOnce,
  fenced,
  floor,
  givesUp,
  idempotency,
  stopsLost,
  told,
  wakeUp,
} from './index.ts'
import { FAULTS, RARITIES } from '../marks.ts'

const script = blueprint('b', { start: 'a' }, (state) => ({
  a: state.handler((_context, actions) => actions.dispatchTask({ type: 't', transitions: { success: 'z' } })),
  z: state.end(),
}))

function created(id: string, key = id): Job {
  const request = { blueprint: 'b', client: { id: 'c' }, initialData: { key } }
  const decision = decide(script, undefined, { type: 'created', at: 1, id, request })
  if (decision.type === 'ignored') throw new Error(decision.reason)
  return decision.job
}

function written(...jobs: readonly Version[]): Entry {
  return { type: 'committed', at: 1, jobs, enqueued: [], removed: [], settled: undefined, born: [] }
}

const v1: Version = { id: 'j', version: 1, job: created('j') }
const over: Version = { id: 'j', version: 2, job: { ...v1.job, status: 'finished', endedAt: 2 } }
const rules = (findings: readonly { readonly rule: string }[]): readonly string[] => findings.map(({ rule }) => rule)

test('[C-09] a job that was acknowledged and is not stored is a loss; an answer that got lost is none', () => {
  const asked: readonly Entry[] = [{ type: 'attempted', at: 1, key: 'j' }]
  expect(accounted([...asked, { type: 'acknowledged', at: 2, key: 'j', jobId: 'j' }], [])).toHaveLength(1)
  expect(accounted(asked, [v1])).toEqual([])
  expect(accounted([], [v1])).toHaveLength(1)
})

test('[C-09] two jobs for one key are found, in the storage and in the answers', () => {
  const twin: Version = { id: 'k', version: 1, job: created('k', 'j') }
  expect(idempotency([], [v1, twin])).toHaveLength(1)
  const answers = ['j', 'k'].map((jobId): Entry => ({ type: 'acknowledged', at: 1, key: 'j', jobId }))
  expect(idempotency(answers, [v1])).toHaveLength(1)
})

test('[C-05] a second end, a gap and a record that nobody wrote are found', () => {
  expect(endsOnce([written(v1), written(over)], [over])).toEqual([])
  const again: Version = { ...over, version: 3 }
  expect(rules(endsOnce([written(v1), written(over), written(again)], [again]))).toEqual(['endsOnce'])
  expect(endsOnce([written(v1), written(again)], [again])).toHaveLength(1)
  expect(endsOnce([], [v1])).toHaveLength(1)
  expect(endsOnce([written(v1)], [])).toHaveLength(1)
})

test('[C-05] after a crash the story goes on from what was durable', () => {
  const crash: Entry = { type: 'reopened', at: 3, jobs: [v1], leases: [] }
  expect(endsOnce([written(v1), written(over), crash, written(over)], [over])).toEqual([])
  const known: Entry = { type: 'told', at: 2, jobId: 'j', version: 2 }
  expect(durable([written(v1), written(over), known, crash], [over])).toHaveLength(1)
})

test('[C-09] a task that was handed out and is free after a crash is found, unless somebody else had claimed it since', () => {
  const taken = decide(script, v1.job, {
    type: 'turnTaken',
    at: 2,
    visit: 1,
    action: {
      type: 'task',
      call: { kind: 'task', type: 't', params: {}, priority: 0, strategy: 'default' },
      transitions: {},
    },
    stateHistory: {},
  })
  if (taken.type === 'ignored') throw new Error(taken.reason)
  const v2: Version = { id: 'j', version: 2, job: taken.job }
  const claimed: Entry = { type: 'claimed', at: 3, leases: [{ queue: 'tasks', id: 'j.1.0', token: 7, deliveries: 1 }] }
  const handed = { type: 'delivered', at: 4, workerId: 'w', isLocal: false } as const
  const delivered: Entry = { ...handed, jobId: 'j', visit: 1, branch: '0', attempt: 1, token: 7 }
  const crash = (deliveries: number): Entry => ({
    type: 'reopened',
    at: 5,
    jobs: [v2],
    leases: [],
    deliveries: new Map([['j.1.0', deliveries]]),
  })
  expect(durable([claimed, delivered, crash(1)], [v2])).toHaveLength(1)
  expect(durable([claimed, delivered, crash(2)], [v2])).toEqual([])
})

test('[H-07] an end that the webhook of its job is not told of is found', async () => {
  const heard: Version = { ...over, job: { ...over.job, webhookUrl: 'https://hear.example/me' } }
  const asked: string[] = []
  const peek: Parameters<typeof told>[1]['peek'] = async (_queue, ids) => {
    asked.push(...ids)
    return [undefined]
  }
  expect(rules(await told([heard], { peek }))).toEqual(['told'])
  expect(asked).toEqual(['msg_j_1_finished'])
  expect(await told([v1, over], { peek })).toEqual([])
})

test('[C-04] a result that counts twice is found', () => {
  const ended: Entry = {
    type: 'accepted',
    at: 1,
    workerId: 'w',
    jobId: 'j',
    visit: 1,
    branch: '0',
    attempt: 1,
    token: 1,
  }
  expect(countsOnce([ended])).toEqual([])
  expect(countsOnce([ended, ended])).toHaveLength(1)
})

test('[F-05] a claim that is settled after it was lost is found, and so are tokens that do not rise', () => {
  const lease = (token: number): { queue: 'turns'; id: string; token: number } => ({ queue: 'turns', id: 'j', token })
  const claimed = (token: number): Entry => ({ type: 'claimed', at: 1, leases: [lease(token)] })
  const settled = (token: number): Entry => ({
    type: 'committed',
    at: 1,
    jobs: [],
    enqueued: [],
    removed: [],
    settled: lease(token),
    born: [],
  })
  expect(fenced([claimed(1), settled(1)])).toEqual([])
  expect(fenced([claimed(1), claimed(2), settled(1)])).toHaveLength(1)
  expect(fenced([claimed(1), settled(1), settled(1)])).toHaveLength(1)
  expect(fenced([claimed(2), claimed(2)])).toHaveLength(1)
})

test('[C-05] an open job without its turn is found', () => {
  const nothing = { item: () => undefined, job: () => undefined }
  expect(rules(wakeUp(v1.job, nothing))).toEqual(['wakeUp'])
  expect(wakeUp(over.job, nothing)).toEqual([])
})

test('[C-09] a run in which too little happened fails', () => {
  const all = Object.fromEntries([...FAULTS, ...RARITIES].map((name) => [name, 1]))
  expect(floor({ ...all, 'jobs that could finish': 100, 'jobs that did finish': 95 })).toEqual([])
  expect(floor({ ...all, 'jobs that could finish': 100, 'jobs that did finish': 94 })).toHaveLength(1)
  expect(floor({ 'jobs that could finish': 1, 'jobs that did finish': 1 })).toHaveLength(
    FAULTS.length + RARITIES.length,
  )
})

test('[E-03] a delivery that counts and that its worker was told to stop is found; another delivery of it is none', () => {
  const ref = { jobId: 'j', visit: 1, branch: '0', attempt: 1, workerId: 'w' }
  const accepted: Entry = { type: 'accepted', at: 1, token: 7, ...ref }
  const stopped = (token: number): Entry => ({ type: 'stopped', at: 2, token, ...ref })
  expect(rules(stopsLost([accepted, stopped(7)]))).toEqual(['stopsLost'])
  expect(stopsLost([stopped(6), accepted, stopped(8)])).toEqual([])
})

test('[C-11] a handler that ended more processes in one visit than it may is found; a new visit counts anew', () => {
  const struckIn = (visit: number): Entry => ({ type: 'struck', at: 1, jobId: 'j', visit })
  const struck = struckIn(1)
  const again: Version = { id: 'j', version: 2, job: { ...v1.job, visit: 2 } }
  const all = Array.from({ length: LIMITS.turnBegunMax }, () => struck)
  const allAgain = all.map(() => struckIn(2))
  expect(givesUp([written(v1), ...all])).toEqual([])
  expect(givesUp([written(v1), ...all, written(again), ...allAgain])).toEqual([])
  // A run of the first visit that was held up until the second.
  expect(givesUp([written(v1), ...all.slice(1), written(again), struck, ...allAgain])).toEqual([])
  expect(rules(givesUp([written(v1), ...all, written(again), struck]))).toEqual(['givesUp'])
  expect(rules(givesUp([written(v1), ...all, struck]))).toEqual(['givesUp'])
  // A retry that was lost in a crash and requested again.
  const back: Entry = { type: 'reopened', at: 1, jobs: [v1], leases: [] }
  const [, ...rest] = allAgain
  expect(givesUp([written(v1), written(again), ...rest, back, written(again), ...allAgain])).toEqual([])
})
