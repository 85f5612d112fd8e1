import { createBlueprintRegistry } from '@impresario/core'
import type { BlueprintRegistry, RunnableBlueprint, ScriptPolicy } from '@impresario/core'
import type { BlueprintSource } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { LoadedBlueprint } from './blueprint-loader.ts'

/** What the configuration says for blueprints that say nothing. */
export interface PolicyDefaults {
  readonly taskAttemptsMax: number
  readonly handlerAttemptsMax: number
  readonly transitionsMax: number
  readonly resultTimeoutMs: number
}

/** The values that a blueprint has when it names none. */
const BUILT_IN: PolicyDefaults = {
  taskAttemptsMax: LIMITS.taskAttemptsMax,
  handlerAttemptsMax: LIMITS.handlerAttemptsMax,
  transitionsMax: LIMITS.transitionsMaxDefault,
  resultTimeoutMs: 300_000,
}

/**
 * The blueprints that the server runs: those that were given in code, and those of a directory, which may be replaced
 * as a whole while the program runs.
 */
export class BlueprintLibrary implements BlueprintSource {
  readonly #given: readonly RunnableBlueprint[]
  readonly #defaults: PolicyDefaults
  #registry: BlueprintRegistry
  #endpoints: ReadonlyMap<string, string> = new Map()

  constructor(given: readonly RunnableBlueprint[], defaults: PolicyDefaults = BUILT_IN) {
    this.#given = given
    this.#defaults = defaults
    this.#registry = createBlueprintRegistry()
    this.replace([])
  }

  /** Takes these in place of those that were loaded before; refuses all of them when one is wrong. */
  replace(loaded: readonly LoadedBlueprint[]): { readonly warnings: readonly string[] } {
    const registry = createBlueprintRegistry()
    const warnings: string[] = []
    const register = (blueprint: RunnableBlueprint): void => {
      warnings.push(...registry.register(withDefaults(blueprint, this.#defaults)).warnings)
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

  /** The name of the blueprint that clients start under this path. */
  byEndpoint(path: string): string | undefined {
    return this.#endpoints.get(trimmed(path))
  }
}

function trimmed(path: string): string {
  return path.replace(/^\/+/, '').replace(/\/+$/, '')
}

/** Paths that mean something else. */
const RESERVED = /^(?:|jobs|jobs\/batch|jobs\/[^/]+\/(?:cancel|retry|discard))$/

function endpointsOf(registry: BlueprintRegistry): ReadonlyMap<string, string> {
  const endpoints = new Map<string, string>()
  for (const { name, endpoint } of registry.list()) {
    if (endpoint === undefined) continue
    const path = trimmed(endpoint)
    if (RESERVED.test(path)) {
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

/** The same blueprint, with the configured numbers where it has the built-in ones. */
function withDefaults(blueprint: RunnableBlueprint, defaults: PolicyDefaults): RunnableBlueprint {
  const { policy } = blueprint
  const changed: ScriptPolicy = {
    ...policy,
    taskAttemptsMax: orDefault(policy, defaults, 'taskAttemptsMax'),
    handlerAttemptsMax: orDefault(policy, defaults, 'handlerAttemptsMax'),
    transitionsMax: orDefault(policy, defaults, 'transitionsMax'),
    resultTimeoutMs: orDefault(policy, defaults, 'resultTimeoutMs'),
  }
  const isSame = (Object.keys(BUILT_IN) as (keyof PolicyDefaults)[]).every((key) => changed[key] === policy[key])
  if (isSame) return blueprint
  return Object.create(blueprint, { policy: { value: changed, enumerable: true } }) as RunnableBlueprint
}

function orDefault(policy: ScriptPolicy, defaults: PolicyDefaults, key: keyof PolicyDefaults): number {
  return policy[key] === BUILT_IN[key] ? defaults[key] : policy[key]
}
