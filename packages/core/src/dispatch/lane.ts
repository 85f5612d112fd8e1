import { ImpresarioError, isJsonObject } from '@impresario/protocol'
import type { ResourceRequirements } from '@impresario/protocol'
import type { WorkerRecord } from '../worker/worker.ts'
import { isStaying } from './demand.ts'
import type { Demand } from './demand.ts'
import { fits } from './match.ts'

/** A demand, and how the worker for it shall be chosen once there is a choice. */
export interface WaitingDemand extends Demand {
  readonly strategy?: string
}

/** A lane of tasks that wait for any worker with these abilities. */
export interface WaitingLane extends WaitingDemand {
  /** Workers that shall leave its tasks to others. */
  readonly exclude: readonly string[]
}

/**
 * Longest lane name for a demand alone. Names are index keys in every storage, and lanes are read
 * whole by every poll; 512 characters hold a dozen requirements. A hash would be shorter, but the
 * instances share nothing but the name, so none could tell what another one's hash stands for.
 */
export const DEMAND_CHARS_MAX = 512
/** With exclusions: room for at least two ids of the greatest length that identifiers may have (200). */
export const LANE_CHARS_MAX = 1_024

const WAITING = 'any:'
const WORKER = 'worker:'

/** The lane of tasks that were given to this worker. */
export function workerLane(workerId: string): string {
  return WORKER + workerId
}

/** The worker whose own lane this is. */
export function workerOfLane(lane: string): string | undefined {
  return lane.startsWith(WORKER) ? lane.slice(WORKER.length) : undefined
}

/**
 * The lane in which a task waits until a worker fits. Equal demands give the same name however
 * they were written, and the name says everything that a worker must meet.
 *
 * `exclude` names workers that failed the task, newest last. It is a preference, so where the name
 * would get too long the oldest are dropped. A demand that is too long itself is refused.
 */
export function requirementLane(demand: WaitingDemand, exclude: readonly string[] = []): string {
  const text = canonicalDemand(demand)
  if (text.length + WAITING.length > DEMAND_CHARS_MAX) {
    const message = `The requirements of the task '${demand.type}' are too long: ${text.length} characters as JSON.`
    throw new ImpresarioError(
      'LIMIT_EXCEEDED',
      `${message} At most ${DEMAND_CHARS_MAX - WAITING.length} are allowed.`,
      {
        details: { limit: DEMAND_CHARS_MAX - WAITING.length, actual: text.length },
      },
    )
  }
  const excluded = newestThatFit(exclude, LANE_CHARS_MAX - WAITING.length - text.length)
  return WAITING + (excluded === undefined ? text : `${text.slice(0, -1)}${excluded}}`)
}

/** What `requirementLane` was given, in canonical form; `undefined` for a lane that it did not make. */
export function parseLane(lane: string): WaitingLane | undefined {
  if (!lane.startsWith(WAITING)) return undefined
  try {
    return asWaitingLane(JSON.parse(lane.slice(WAITING.length)))
  } catch {
    return undefined
  }
}

/**
 * Whether a worker may take the tasks of a waiting lane. Depends on nothing but the lane and the
 * record, so an answer stays right until the record changes. A worker that called itself full in
 * its last heartbeat may: it is the worker that asks, so it has room by now.
 */
export function laneMatchesWorker(lane: string | WaitingLane, worker: WorkerRecord): boolean {
  const waiting = typeof lane === 'string' ? parseLane(lane) : lane
  return (
    waiting !== undefined &&
    isStaying(worker.status) &&
    worker.skills.includes(waiting.type) &&
    (worker.availableSkills === undefined || worker.availableSkills.includes(waiting.type)) &&
    !waiting.exclude.includes(worker.id) &&
    fits(waiting, worker)
  )
}

/** Parses lanes and caches them, because every poll looks at all of them again. The cache is cleared when it is full. */
export class LaneReader {
  readonly #lanesMax: number
  readonly #read = new Map<string, WaitingLane | undefined>()

  /** The names of 10,000 lanes are at most 10 MB; more different demands than that do not wait at one time. */
  constructor(lanesMax = 10_000) {
    this.#lanesMax = lanesMax
  }

  read(lane: string): WaitingLane | undefined {
    const known = this.#read.get(lane)
    if (known !== undefined || this.#read.has(lane)) return known
    const waiting = parseLane(lane)
    if (this.#read.size >= this.#lanesMax) this.#read.clear()
    this.#read.set(lane, waiting)
    return waiting
  }
}

function canonicalDemand({ type, requirements, maxCost, strategy }: WaitingDemand): string {
  // Most tasks ask for nothing but a skill, and this runs for each of them.
  if (requirements === undefined && maxCost === undefined && (strategy ?? 'default') === 'default') {
    return `{"type":${JSON.stringify(type)}}`
  }
  return JSON.stringify({
    type,
    maxCost: settled(maxCost),
    requirements: requirements && canonicalNeeds(requirements),
    strategy: strategy === 'default' ? undefined : strategy,
  })
}

/** Without what asks for nothing. `gpu: {}` stays: it asks for any GPU. */
function canonicalNeeds({ gpu, cpuCores, ramGb, models, software, properties }: ResourceRequirements): unknown {
  return compact({
    gpu: gpu && (compact(gpu) ?? {}),
    cpuCores,
    ramGb,
    models,
    software: software && compact(software),
    properties: properties && compact(properties),
  })
}

/** Keys in order, empty values left out; `undefined` when nothing remains. */
function compact(record: object): object | undefined {
  const kept = Object.entries(record)
    .map(([key, value]): [string, unknown] => [key, settled(value)])
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** Lists mean all of, so their order and repetitions do not count. Null counts as absent. */
function settled(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new ImpresarioError('INVALID_BLUEPRINT', `A requirement of a task must be a finite number, not ${value}.`)
  }
  if (!Array.isArray(value)) return value ?? undefined
  const texts = new Set(value.map((one: unknown) => JSON.stringify(one)))
  return texts.size === 0 ? undefined : [...texts].sort().map((text): unknown => JSON.parse(text))
}

function newestThatFit(ids: readonly string[], roomChars: number): string | undefined {
  let left = roomChars - ',"exclude":[]'.length
  const kept: string[] = []
  for (const id of new Set(ids.toReversed())) {
    const text = JSON.stringify(id)
    left -= text.length + 1
    if (left < 0) break
    kept.push(text)
  }
  return kept.length === 0 ? undefined : `,"exclude":[${kept.sort().join(',')}]`
}

/** Lanes are written by `requirementLane` alone, so a name that has a type has the rest as well. */
function asWaitingLane(value: unknown): WaitingLane | undefined {
  if (!isJsonObject(value) || typeof value['type'] !== 'string') return undefined
  return { exclude: [], ...(value as unknown as WaitingDemand) }
}
