import { didYouMean, POLICY_DEFAULTS } from '@impresario/core'
import type { Job, JobEvent, RunnableBlueprint, Script } from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'

/** Where the engine finds blueprints. The registry of `core` fits. */
export interface BlueprintSource {
  get(name: string, version: number): RunnableBlueprint | undefined
  latest(name: string): RunnableBlueprint | undefined
  /** Every version of every blueprint; without it, events by key are not checked before they reach a job. */
  list?(): readonly RunnableBlueprint[]
}

/**
 * Finds the script that a job runs under. A job stays on the version that it began with; when that
 * version is gone, its turns are migrated or quarantined, never run on another script.
 */
export class ScriptRegistry {
  readonly #source: BlueprintSource

  constructor(source: BlueprintSource) {
    this.#source = source
  }

  latest(name: string): RunnableBlueprint {
    const found = this.#source.latest(name)
    if (found === undefined) throw notFound(name, this.suggestion(name))
    return found
  }

  /** The blueprint that a caller may have meant: the end of a sentence, or nothing. */
  suggestion(name: string): string {
    const open = (this.#source.list?.() ?? []).filter(({ isInternal }) => isInternal !== true)
    return didYouMean(
      name,
      open.map((one) => one.name),
    )
  }

  /** Whether only parts of the orchestrator start it. */
  isInternal(name: string): boolean {
    return this.#source.latest(name)?.isInternal === true
  }

  find(name: string): RunnableBlueprint | undefined {
    return this.#source.latest(name)
  }

  /** The blueprints that say what an event of this topic brings. */
  declaring(topic: string): readonly RunnableBlueprint[] {
    return (this.#source.list?.() ?? []).filter(({ topics }) => topics?.includes(topic) === true)
  }

  of(job: Job): RunnableBlueprint | undefined {
    return this.#source.get(job.blueprint, job.blueprintVersion)
  }

  scriptFor(job: Job | undefined, event: JobEvent): Script {
    if (event.type === 'created') return this.latest(event.request.blueprint)
    if (job === undefined) return NO_SCRIPT
    if (event.type === 'migrated') return this.#source.get(job.blueprint, event.version) ?? missingScript(job)
    return this.of(job) ?? missingScript(job)
  }
}

function notFound(name: string, suggestion: string): ImpresarioError {
  return new ImpresarioError('BLUEPRINT_NOT_FOUND', `There is no blueprint "${name}".${suggestion}`, {
    details: { blueprint: name },
  })
}

const POLICY = { ...POLICY_DEFAULTS, transitionsMax: LIMITS.transitionsMaxCeiling }

const NO_SCRIPT: Script = { name: '', version: 0, start: '', state: () => undefined, policy: POLICY }

/**
 * Stands in for a version that is gone, so that results which are still on their way are kept: they
 * move the job to the next state, and the turn there finds the version missing.
 */
function missingScript(job: Job): Script {
  return {
    name: job.blueprint,
    version: job.blueprintVersion,
    start: job.state,
    // Of all kinds only this one keeps the results of a fan-out for the state that follows.
    state: () => ({ kind: 'aggregator' }),
    policy: POLICY,
  }
}
