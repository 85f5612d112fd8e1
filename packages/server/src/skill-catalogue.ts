import type { WorkerRecord } from '@impresario/core'
import type { CatalogueEntry, JsonObject } from '@impresario/protocol'

/** The skills of these workers, by name, each with all who provide it. */
export function catalogueOf(workers: readonly WorkerRecord[]): Readonly<Record<string, CatalogueEntry>> {
  const providers = new Map<string, WorkerRecord[]>()
  for (const worker of workers) {
    for (const skill of new Set(worker.skills)) providers.set(skill, [...(providers.get(skill) ?? []), worker])
  }
  const names = [...providers.keys()].toSorted()
  // A skill may be named like a property that every object has.
  return Object.assign(
    Object.create(null) as Record<string, CatalogueEntry>,
    Object.fromEntries(names.map((name) => [name, entryOf(name, providers.get(name) ?? [])])),
  )
}

function entryOf(skill: string, providers: readonly WorkerRecord[]): CatalogueEntry {
  const reputation = providers.reduce((sum, worker) => sum + worker.reputation, 0)
  return {
    contract: newestContract(skill, providers),
    providers_count: providers.length,
    worker_types: [...new Set(providers.map(({ type }) => type))].toSorted(),
    average_reputation: Math.round((reputation / Math.max(1, providers.length)) * 10_000) / 10_000,
  }
}

function newestContract(skill: string, providers: readonly WorkerRecord[]): JsonObject | null {
  for (const { skillInfo } of providers.toSorted((a, b) => b.registeredAt - a.registeredAt)) {
    const said = skillInfo?.find((info) => info['name'] === skill)
    if (said !== undefined) return said
  }
  return null
}
