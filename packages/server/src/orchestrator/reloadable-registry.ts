import { POLICY_DEFAULTS, completePolicy, createBlueprintRegistry } from '@impresario/core'
import type { BlueprintRegistry, PolicyDefaults, RunnableBlueprint } from '@impresario/core'
import type { BlueprintSource } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import type { LoadedBlueprint } from './blueprint-loader.ts'

/** What the configuration says for blueprints that say nothing. */
export type ConfiguredPolicy = Pick<
  PolicyDefaults,
  'taskAttemptsMax' | 'handlerAttemptsMax' | 'transitionsMax' | 'runTimeoutMs' | 'offloads'
>

/**
 * The blueprints that the server runs: those that were given in code, and those of a directory, which may be replaced
 * as a whole while the program runs.
 */
export class ReloadableRegistry implements BlueprintSource {
  readonly #given: readonly RunnableBlueprint[]
  readonly #defaults: PolicyDefaults
  #registry: BlueprintRegistry
  #endpoints: ReadonlyMap<string, string> = new Map()
  #apiVersions: ReadonlySet<string> = new Set()

  constructor(given: readonly RunnableBlueprint[], defaults: Partial<ConfiguredPolicy> = {}) {
    this.#given = given
    this.#defaults = { ...POLICY_DEFAULTS, ...defaults }
    this.#registry = createBlueprintRegistry()
    this.replace([])
  }

  /** Takes these in place of those that were loaded before; refuses all of them when one is wrong. */
  replace(loaded: readonly LoadedBlueprint[]): { readonly warnings: readonly string[] } {
    const registry = createBlueprintRegistry()
    const warnings: string[] = []
    const register = (blueprint: RunnableBlueprint): void => {
      warnings.push(...registry.register(configured(blueprint, this.#defaults)).warnings)
    }
    for (const blueprint of this.#given) register(blueprint)
    for (const { file, blueprint } of loaded) {
      try {
        register(blueprint)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        throw new ImpresarioError('INVALID_BLUEPRINT', `${file}: ${reason}`, { cause: error })
      }
    }
    this.#endpoints = endpointsOf(registry)
    this.#apiVersions = new Set(registry.list().flatMap(({ apiVersion }) => apiVersion ?? []))
    this.#registry = registry
    return { warnings }
  }

  get(name: string, version: number): RunnableBlueprint | undefined {
    return this.#registry.get(name, version)
  }

  latest(name: string): RunnableBlueprint | undefined {
    return this.#registry.latest(name)
  }

  list(): readonly RunnableBlueprint[] {
    return this.#registry.list()
  }

  /**
   * The name of the blueprint that clients start under this path. A version of the API may stand before it, as a part
   * of the path or for itself; a blueprint that names none is found under every one that is given for itself.
   */
  byEndpoint(path: string, apiVersion?: string): string | undefined {
    const bare = trimmed(path)
    const own = apiVersion === undefined ? undefined : this.#endpoints.get(`${apiVersion}/${bare}`)
    return own ?? this.#endpoints.get(bare) ?? this.#byName(bare)
  }

  /** Every blueprint is found under `jobs/` and its name, unless that is the endpoint of another. */
  #byName(path: string): string | undefined {
    const name = /^jobs\/([^/]+)$/.exec(path)?.[1]
    return name === undefined ? undefined : this.latest(name)?.name
  }

  /** Whether endpoints of blueprints belong to this version of the API. */
  hasApiVersion(apiVersion: string): boolean {
    return this.#apiVersions.has(apiVersion)
  }
}

function trimmed(path: string): string {
  return path.replace(/^\/+/, '').replace(/\/+$/, '')
}

/** Paths that mean something else. */
const RESERVED =
  /^(?:|jobs|jobs\/batch|jobs\/[^/]+\/(?:cancel|retry|discard)|quarantine\/(?:retry|discard)|schedules\/[^/]+\/run|admin\/.*)$/

function endpointsOf(registry: BlueprintRegistry): ReadonlyMap<string, string> {
  const endpoints = new Map<string, string>()
  for (const { name, endpoint, apiVersion } of registry.list()) {
    if (endpoint === undefined) continue
    const bare = trimmed(endpoint)
    const path = apiVersion === undefined ? bare : `${apiVersion}/${bare}`
    if (RESERVED.test(bare)) {
      throw new ImpresarioError(
        'INVALID_BLUEPRINT',
        `"${name}" has the endpoint "${endpoint}", which the server needs itself.`,
      )
    }
    const other = endpoints.get(path)
    if (other !== undefined && other !== name) {
      throw new ImpresarioError('INVALID_BLUEPRINT', `"${other}" and "${name}" both have the endpoint "${endpoint}".`)
    }
    endpoints.set(path, name)
  }
  return endpoints
}

/** The same blueprint, with the configured numbers where it names none. */
function configured(blueprint: RunnableBlueprint, defaults: PolicyDefaults): RunnableBlueprint {
  if (blueprint.ownPolicy === undefined) return blueprint
  const policy = completePolicy(blueprint.ownPolicy, defaults)
  return Object.create(blueprint, { policy: { value: policy, enumerable: true } }) as RunnableBlueprint
}
