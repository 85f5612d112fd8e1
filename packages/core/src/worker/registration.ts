import type { WorkerRecord } from './worker.ts'

/** What a worker may say of itself. Some clients send `null` for what they do not know: it counts as not sent. */
export type WorkerPatch = {
  readonly [K in keyof Omit<WorkerRecord, 'id' | 'registeredAt' | 'seenAt'>]?: WorkerRecord[K] | null | undefined
}

export interface NewWorker extends WorkerPatch {
  readonly id: string
}

/** The record of a worker that has just registered. What it did not say gets the most modest value. */
export function newWorkerRecord(said: NewWorker, now: number): WorkerRecord {
  const unsaid: WorkerRecord = {
    id: said.id,
    type: 'worker',
    status: 'idle',
    skills: [],
    hotSkills: [],
    hotModels: [],
    concurrencyMax: 1,
    cpuCores: 0,
    ramGb: 0,
    gpus: [],
    models: [],
    software: {},
    properties: {},
    costPerSecond: undefined,
    costPerSkill: {},
    // Newcomers are trusted: with zero they would never get a task to prove themselves with.
    reputation: Math.min(1, atLeast(0, said.reputation ?? 1)),
    registeredAt: now,
    seenAt: now,
  }
  return mergeHeartbeat(unsaid, said, now)
}

/**
 * The record after a heartbeat. What is absent or null keeps its value; a list replaces the list
 * before it. An empty heartbeat only says that the worker is alive.
 */
export function mergeHeartbeat(record: WorkerRecord, patch: WorkerPatch, now: number): WorkerRecord {
  const availableSkills = patch.availableSkills ?? record.availableSkills
  const skillInfo = patch.skillInfo ?? record.skillInfo
  const metadata = patch.metadata ?? record.metadata
  const isOpenEnded = patch.isOpenEnded ?? record.isOpenEnded
  return {
    id: record.id,
    type: patch.type ?? record.type,
    status: patch.status ?? record.status,
    skills: patch.skills ?? record.skills,
    ...(availableSkills === undefined ? {} : { availableSkills }),
    hotSkills: patch.hotSkills ?? record.hotSkills,
    hotModels: patch.hotModels ?? record.hotModels,
    concurrencyMax: atLeast(1, Math.floor(patch.concurrencyMax ?? record.concurrencyMax)),
    ...(isOpenEnded === true ? { isOpenEnded } : {}),
    cpuCores: atLeast(0, patch.cpuCores ?? record.cpuCores),
    ramGb: atLeast(0, patch.ramGb ?? record.ramGb),
    gpus: patch.gpus ?? record.gpus,
    models: patch.models ?? record.models,
    software: patch.software ?? record.software,
    properties: patch.properties ?? record.properties,
    costPerSecond: isPrice(patch.costPerSecond) ? patch.costPerSecond : record.costPerSecond,
    costPerSkill: patch.costPerSkill ? onlyPrices(patch.costPerSkill) : record.costPerSkill,
    // Earned, not said: whatever a worker claims of itself later, its record keeps what its tasks came to.
    reputation: record.reputation,
    registeredAt: record.registeredAt,
    // Heartbeats that overtake each other must not make a worker look older than it is.
    seenAt: Math.max(record.seenAt, now),
    ...(skillInfo === undefined ? {} : { skillInfo }),
    ...(metadata === undefined ? {} : { metadata }),
  }
}

/** Not what a worker says of itself: when it was heard of, and what it has earned. */
const KEPT_APART: ReadonlySet<string> = new Set(['seenAt', 'registeredAt', 'reputation'])

/** What a worker says of itself now that it did not say before. */
export function changedFields(before: WorkerRecord, after: WorkerRecord): readonly (keyof WorkerRecord)[] {
  return workerFields(before, after).filter((field) => {
    const [was, is] = [before[field], after[field]]
    // A heartbeat keeps what it does not name, as the very same value; only the rest has to be looked into.
    return was !== is && JSON.stringify(was) !== JSON.stringify(is)
  })
}

/** Boundary: the keys of a record are those of its type. */
function workerFields(...records: readonly WorkerRecord[]): readonly (keyof WorkerRecord)[] {
  const names = new Set(records.flatMap((record) => Object.keys(record)))
  return [...names].filter((name) => !KEPT_APART.has(name)) as (keyof WorkerRecord)[]
}

/** Also for NaN and infinity, which would make every later comparison wrong. */
function atLeast(least: number, value: number): number {
  return Number.isFinite(value) && value > least ? value : least
}

function isPrice(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function onlyPrices(costs: Readonly<Record<string, unknown>>): Readonly<Record<string, number>> {
  const prices: Record<string, number> = {}
  for (const [skill, cost] of Object.entries(costs)) {
    if (isPrice(cost)) prices[skill] = cost
  }
  return prices
}
