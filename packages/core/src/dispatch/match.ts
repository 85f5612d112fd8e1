import { compareNumbers, keptNumberIn } from '@impresario/protocol'
import type { AnyNumber, Json, ResourceRequirements } from '@impresario/protocol'
import type { Gpu, WorkerRecord } from '../worker/worker.ts'
import { costOf, isAccepting } from './demand.ts'
import type { Demand } from './demand.ts'

export type MismatchReason =
  | 'skill'
  | 'skill_unavailable'
  | 'status'
  | 'gpu'
  | 'gpu_model'
  | 'gpu_vram'
  | 'cpu_cores'
  | 'ram_gb'
  | 'models'
  | 'software'
  | 'property'
  | 'max_cost'
  /** Fits, but has no free slot. */
  | 'slots'
  /** Fits, but has just failed this task. */
  | 'excluded'

/** One thing that keeps a worker from a task, as data. */
export interface Mismatch {
  readonly reason: MismatchReason
  /** Which software or property, where there are several. */
  readonly name?: string
  readonly needed: Json
  readonly has: Json
}

type Needs = ResourceRequirements
type GpuNeed = NonNullable<Needs['gpu']>
type PropertyNeed = NonNullable<Needs['properties']>[string]

/**
 * Whether the worker can take such a task, slots aside. Runs for every candidate of every dispatch,
 * so it makes no objects; `match` says the same with reasons.
 */
export function matches(demand: Demand, worker: WorkerRecord): boolean {
  return isAccepting(worker) && canStart(worker, demand.type) && fits(demand, worker)
}

/** Like `matches`, for a worker whose skill and status are known to be right. */
export function fits(demand: Demand, worker: WorkerRecord): boolean {
  if (demand.maxCost !== undefined && isTooDear(worker, demand.type, demand.maxCost)) return false
  const needs = demand.requirements
  return needs === undefined || meets(worker, needs)
}

/** What keeps the worker from the task; empty when nothing does. */
export function match(demand: Demand, worker: WorkerRecord): Mismatch[] {
  const found: Mismatch[] = []
  if (!worker.skills.includes(demand.type)) {
    found.push({ reason: 'skill', needed: demand.type, has: worker.skills })
  } else if (worker.availableSkills !== undefined && !worker.availableSkills.includes(demand.type)) {
    found.push({ reason: 'skill_unavailable', needed: demand.type, has: worker.availableSkills })
  }
  if (!isAccepting(worker)) {
    const needed = worker.isOpenEnded === true ? ['idle'] : ['idle', 'busy']
    found.push({ reason: 'status', needed, has: worker.status })
  }
  if (demand.requirements !== undefined) addLacks(found, worker, demand.requirements)
  const cost = costOf(worker, demand.type)
  if (demand.maxCost !== undefined && cost !== undefined && cost > demand.maxCost) {
    found.push({ reason: 'max_cost', needed: demand.maxCost, has: cost })
  }
  return found
}

function canStart(worker: WorkerRecord, type: string): boolean {
  const available = worker.availableSkills
  return worker.skills.includes(type) && (available === undefined || available.includes(type))
}

/** A worker without a price charges nothing, so no ceiling excludes it. (When ranking it comes after known prices.) */
function isTooDear(worker: WorkerRecord, type: string, maxCost: number): boolean {
  const cost = costOf(worker, type)
  return cost !== undefined && cost > maxCost
}

function meets(worker: WorkerRecord, needs: Needs): boolean {
  if (needs.cpuCores !== undefined && worker.cpuCores < needs.cpuCores) return false
  if (needs.ramGb !== undefined && worker.ramGb < needs.ramGb) return false
  if (needs.gpu !== undefined && !hasGpu(worker.gpus, needs.gpu)) return false
  if (needs.models !== undefined && !hasAll(worker.models, needs.models)) return false
  const { software, properties } = needs
  // `for in` where `Object.keys` would make an array; requirements are plain objects.
  if (software !== undefined) {
    for (const name in software) if (!hasSoftware(worker, name, software[name])) return false
  }
  if (properties !== undefined) {
    for (const name in properties) if (!hasProperty(worker.properties[name], properties[name])) return false
  }
  return true
}

function addLacks(found: Mismatch[], worker: WorkerRecord, needs: Needs): void {
  const gpu = needs.gpu === undefined ? undefined : gpuMismatch(worker.gpus, needs.gpu)
  if (gpu !== undefined) found.push(gpu)
  if (needs.cpuCores !== undefined && worker.cpuCores < needs.cpuCores) {
    found.push({ reason: 'cpu_cores', needed: needs.cpuCores, has: worker.cpuCores })
  }
  if (needs.ramGb !== undefined && worker.ramGb < needs.ramGb) {
    found.push({ reason: 'ram_gb', needed: needs.ramGb, has: worker.ramGb })
  }
  const missing = (needs.models ?? []).filter((model) => !worker.models.includes(model))
  if (missing.length > 0) found.push({ reason: 'models', needed: missing, has: worker.models })
  for (const [name, needed] of Object.entries(needs.software ?? {})) {
    if (hasSoftware(worker, name, needed)) continue
    found.push({ reason: 'software', name, needed, has: ownValue(worker.software, name) })
  }
  for (const [name, needed] of Object.entries(needs.properties ?? {})) {
    if (hasProperty(worker.properties[name], needed)) continue
    found.push({ reason: 'property', name, needed, has: ownValue(worker.properties, name) })
  }
}

/** One and the same GPU must have both the model and the memory. `{}` asks for any GPU. */
function hasGpu(gpus: readonly Gpu[], need: GpuNeed): boolean {
  for (const gpu of gpus) {
    if (need.vramGb !== undefined && gpu.vramGb < need.vramGb) continue
    if (need.model === undefined || containsName(gpu.model, need.model)) return true
  }
  return false
}

function gpuMismatch(gpus: readonly Gpu[], { model, vramGb }: GpuNeed): Mismatch | undefined {
  if (gpus.length === 0) return { reason: 'gpu', needed: 'GPU', has: null }
  const named = model === undefined ? gpus : gpus.filter((gpu) => containsName(gpu.model, model))
  if (model !== undefined && named.length === 0) {
    return { reason: 'gpu_model', needed: model, has: gpus.map((gpu) => gpu.model) }
  }
  const most = Math.max(...named.map((gpu) => gpu.vramGb))
  return vramGb !== undefined && most < vramGb ? { reason: 'gpu_vram', needed: vramGb, has: most } : undefined
}

/** Whether a name is part of another; A to Z count as a to z. By hand, because `toLowerCase` makes strings. */
function containsName(whole: string, part: string): boolean {
  for (let start = 0; start <= whole.length - part.length; start += 1) {
    let same = 0
    while (same < part.length && foldedCode(whole, start + same) === foldedCode(part, same)) same += 1
    if (same === part.length) return true
  }
  return false
}

function foldedCode(text: string, index: number): number {
  const code = text.charCodeAt(index)
  return code >= 65 && code <= 90 ? code + 32 : code
}

function hasAll(has: readonly unknown[], needed: readonly unknown[]): boolean {
  for (const one of needed) {
    if (!has.includes(one)) return false
  }
  return true
}

function hasSoftware(worker: WorkerRecord, name: string, version: string | undefined): boolean {
  const has: unknown = worker.software[name]
  return version === 'any' ? typeof has === 'string' : has === version
}

/** A single value counts as a list of one, on either side: `zone: 'a'` is met by `zone: ['a', 'b']`. */
function hasProperty(has: unknown, needed: PropertyNeed | undefined): boolean {
  if (typeof needed === 'number') return typeof has === 'number' ? has >= needed : isAtLeast(has, needed)
  const least = keptNumberIn(needed)
  if (least !== undefined) return isAtLeast(has, least)
  if (isList(needed)) return isList(has) ? hasAll(has, needed) : needed.every((one) => one === has)
  return isList(has) ? has.includes(needed) : has === needed
}

/** For numbers of so many digits that they are kept as texts. */
function isAtLeast(has: unknown, least: AnyNumber): boolean {
  const most = typeof has === 'number' ? has : keptNumberIn(has)
  return most !== undefined && compareNumbers(most, least) >= 0
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

function ownValue(record: Readonly<Record<string, Json>>, name: string): Json {
  return Object.hasOwn(record, name) ? (record[name] ?? null) : null
}
