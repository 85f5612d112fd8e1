import { setImmediate as nextTick } from 'node:timers/promises'
import type { WorkerRecord } from '@impresario/core'
import type { CatalogueEntry, JsonObject } from '@impresario/protocol'

/** Skills of workers that are counted before other work runs: a few milliseconds. */
const AT_ONCE = 5_000

interface Skill {
  count: number
  reputation: number
  readonly types: Set<string>
  contract: JsonObject | null
  /** When the worker registered whose contract it is. */
  contractAt: number
}

/** The skills of these workers with all who provide them, in the order of their names. */
export async function catalogueOf(
  workers: Iterable<WorkerRecord>,
): Promise<readonly (readonly [string, CatalogueEntry])[]> {
  const skills = new Map<string, Skill>()
  let counted = 0
  for (const worker of workers) {
    for (const name of new Set(worker.skills)) {
      addProvider(skills, name, worker)
      counted += 1
    }
    addContracts(skills, worker)
    if (counted < AT_ONCE) continue
    counted = 0
    await nextTick()
  }
  return [...skills].map(([name, skill]) => [name, entryOf(skill)] as const).toSorted(([a], [b]) => (a < b ? -1 : 1))
}

function addProvider(skills: Map<string, Skill>, name: string, { reputation, type }: WorkerRecord): void {
  const skill = skills.get(name)
  if (skill === undefined) {
    const contract = { contract: null, contractAt: Number.NEGATIVE_INFINITY }
    skills.set(name, { count: 1, reputation, types: new Set([type]), ...contract })
    return
  }
  skill.count += 1
  skill.reputation += reputation
  skill.types.add(type)
}

/** The skill as its newest provider describes it; the first of several descriptions of one worker counts. */
function addContracts(skills: Map<string, Skill>, { skillInfo = [], registeredAt }: WorkerRecord): void {
  for (const info of skillInfo) {
    const name = info['name']
    const skill = typeof name === 'string' ? skills.get(name) : undefined
    if (skill === undefined || registeredAt <= skill.contractAt) continue
    skill.contract = info
    skill.contractAt = registeredAt
  }
}

function entryOf({ contract, count, types, reputation }: Skill): CatalogueEntry {
  return {
    contract,
    providers_count: count,
    worker_types: [...types].toSorted(),
    average_reputation: Math.round((reputation / count) * 10_000) / 10_000,
  }
}
