import { ImpresarioError } from '@impresario/protocol'
import type { RunnableBlueprint } from './blueprint.ts'
import { checkBlueprint } from './check.ts'
import { isBlueprint } from './define.ts'

/** The blueprints that this orchestrator can run, in every version that it still has. */
export interface BlueprintRegistry {
  /** Checks the blueprint first. Throws when it cannot work; returns what looks wrong but may be meant. */
  register(blueprint: RunnableBlueprint): { readonly warnings: readonly string[] }
  /** That very version; without a number the latest. */
  get(name: string, version?: number): RunnableBlueprint | undefined
  latest(name: string): RunnableBlueprint | undefined
  names(): readonly string[]
  /** Every version of every blueprint, by name, then oldest first. */
  list(): readonly RunnableBlueprint[]
}

export function createBlueprintRegistry(): BlueprintRegistry {
  /** Versions in ascending order. */
  const byName = new Map<string, readonly RunnableBlueprint[]>()
  const latest = (name: string) => byName.get(name)?.at(-1)

  return {
    register: (blueprint) => {
      if (!isBlueprint(blueprint)) {
        throw new ImpresarioError(
          'INVALID_BLUEPRINT',
          'This is not a blueprint. Create it with blueprint(name, shape, states).',
        )
      }
      const { name, version } = blueprint
      const versions = byName.get(name) ?? []
      if (versions.some((known) => known.version === version)) {
        throw refusal(name, [`version ${version} is registered already. Rename it, or raise its \`version\`.`])
      }
      const { problems, warnings } = checkBlueprint(blueprint)
      if (problems.length > 0) throw refusal(name, problems)
      byName.set(
        name,
        [...versions, blueprint].toSorted((a, b) => a.version - b.version),
      )
      return { warnings: warnings.map((warning) => `Blueprint "${name}": ${warning}`) }
    },
    get: (name, version) =>
      version === undefined ? latest(name) : byName.get(name)?.find((known) => known.version === version),
    latest,
    names: () => [...byName.keys()].toSorted(),
    list: () => [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, versions]) => versions),
  }
}

function refusal(name: string, problems: readonly string[]): ImpresarioError {
  return new ImpresarioError(
    'INVALID_BLUEPRINT',
    problems.map((problem) => `Blueprint "${name}": ${problem}`).join('\n'),
  )
}
