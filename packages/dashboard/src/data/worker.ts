import type { WorkerBody } from '@impresario/protocol'

export interface WorkerView {
  readonly id: string
  readonly type: string
  readonly status: string
  readonly skills: readonly string[]
  readonly hotSkills: readonly string[]
  readonly models: readonly string[]
  readonly load: number
  /** How many tasks at once; a worker need not say. */
  readonly slots: number | undefined
  readonly reputation: number
  readonly costPerSecond: number | undefined
  readonly costPerSkill: Readonly<Record<string, number>>
  readonly hardware: readonly string[]
  readonly software: Readonly<Record<string, string>>
  readonly registeredAt: number
  readonly seenAt: number
  readonly raw: WorkerBody
}

/** The boundary at which a worker's loose body becomes something to show. */
export function readWorker(raw: WorkerBody): WorkerView {
  const body = raw as unknown as {
    readonly hot_skills?: readonly string[]
    readonly hot_cache?: readonly string[]
    readonly load?: number
    readonly max_concurrent_tasks?: number | null
    readonly reputation?: number
    readonly cost_per_second?: number | null
    readonly cost_per_skill?: Readonly<Record<string, number>>
    readonly installed_software?: Readonly<Record<string, string>>
    readonly registered_at?: number
    readonly seen_at?: number
    readonly resources?: {
      readonly cpu_cores?: number
      readonly ram_gb?: number
      readonly gpus?: readonly { readonly model?: string; readonly vram_gb?: number }[]
    }
  }
  const { cpu_cores: cores = 0, ram_gb: ram = 0, gpus = [] } = body.resources ?? {}
  return {
    id: raw.worker_id,
    type: raw.worker_type,
    status: raw.status,
    skills: raw.supported_skills,
    hotSkills: body.hot_skills ?? [],
    models: body.hot_cache ?? [],
    load: body.load ?? 0,
    slots: body.max_concurrent_tasks ?? undefined,
    reputation: body.reputation ?? 1,
    costPerSecond: body.cost_per_second ?? undefined,
    costPerSkill: body.cost_per_skill ?? {},
    hardware: [
      cores > 0 ? `${cores} CPU` : '',
      ram > 0 ? `${ram} GB RAM` : '',
      ...gpus.map(({ model = 'GPU', vram_gb: vram = 0 }) => (vram > 0 ? `${model} ${vram} GB` : model)),
    ].filter((part) => part !== ''),
    software: body.installed_software ?? {},
    registeredAt: body.registered_at ?? 0,
    seenAt: body.seen_at ?? 0,
    raw,
  }
}

/** What a second of such a task costs with this worker; undefined where it names no price. */
export function priceOf({ costPerSecond, costPerSkill }: WorkerView, type: string): number | undefined {
  return Object.hasOwn(costPerSkill, type) ? costPerSkill[type] : costPerSecond
}

/** The reputation that an event of its history tells of. */
export function reputationIn(snapshot: unknown): number | undefined {
  const { reputation } = (typeof snapshot === 'object' && snapshot !== null ? snapshot : {}) as Record<string, unknown>
  return typeof reputation === 'number' ? reputation : undefined
}

/** How its reputation went, the oldest first; each change once. */
export function reputationsOf(snapshots: readonly unknown[]): readonly number[] {
  const all = snapshots.flatMap((snapshot) => reputationIn(snapshot) ?? []).toReversed()
  return all.filter((value, at) => value !== all[at - 1])
}
