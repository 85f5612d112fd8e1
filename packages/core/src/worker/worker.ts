import type { JsonObject } from '@impresario/protocol'

export type WorkerStatus = 'idle' | 'busy' | 'full' | 'draining' | 'offline'

export interface Gpu {
  readonly model: string
  readonly vramGb: number
}

/** What the orchestrator knows of a worker: what it said when it registered, and what it has said since. */
export interface WorkerRecord {
  readonly id: string
  readonly type: string
  readonly status: WorkerStatus
  /** Everything it can do. */
  readonly skills: readonly string[]
  /** What it can start right now, when it says so; otherwise all of `skills`. */
  readonly availableSkills?: readonly string[]
  /** Skills that are warm: their models are loaded. */
  readonly hotSkills: readonly string[]
  /** Models that are loaded. */
  readonly hotModels: readonly string[]
  readonly concurrencyMax: number
  /** It did not say how many tasks it takes at a time: it asks for more while it has room, and says when it has none. */
  readonly isOpenEnded?: boolean
  readonly cpuCores: number
  readonly ramGb: number
  readonly gpus: readonly Gpu[]
  readonly models: readonly string[]
  readonly software: Readonly<Record<string, string>>
  readonly properties: JsonObject
  readonly costPerSecond: number | undefined
  readonly costPerSkill: Readonly<Record<string, number>>
  /** From 0 to 1. */
  readonly reputation: number
  readonly registeredAt: number
  readonly seenAt: number
  /** Skill descriptions as the worker sent them, for the catalogue. */
  readonly skillInfo?: readonly JsonObject[]
  readonly metadata?: JsonObject
}
