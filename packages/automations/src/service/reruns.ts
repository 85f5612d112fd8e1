import { isEnded } from '@impresario/core'
import type { Random, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { DataObject } from '@impresario/protocol'
import type { Pipeline } from '../pipeline/step.ts'
import type { RunProgress } from '../run/progress.ts'
import type { Actor } from './audit.ts'
import type { Launched, Launcher } from './launcher.ts'
import { asAutomation, nearId } from './record.ts'
import { automationOf, runStateOf, startOf } from './run-start.ts'

export interface RerunOptions {
  readonly storage: Storage
  readonly random: Random
  readonly launcher: Launcher
}

export interface Rerun {
  /** The step to begin with; what the steps before it gave is carried over. Without it: from the beginning. */
  readonly from?: string | undefined
  /** In place of single params of the run. */
  readonly params?: DataObject | undefined
}

const CONFLICTS_MAX = 20

/**
 * Runs that are repeated. A repetition has the event and the params of the first run and the pipeline that the automation has
 * now, so that what was mended takes effect.
 */
export class Reruns {
  readonly #options: RerunOptions

  constructor(options: RerunOptions) {
    this.#options = options
  }

  async rerun(runId: string, actor: Actor, { from, params = {} }: Rerun): Promise<Exclude<Launched, { type: 'lost' }>> {
    const { storage, random, launcher } = this.#options
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const job = (await storage.read('job', runId))?.value
      const automationId = job === undefined ? undefined : automationOf(job)
      if (job === undefined || automationId === undefined || (!actor.isAdmin && job.client.id !== actor.id)) {
        throw new ImpresarioError('NOT_FOUND', 'Run not found')
      }
      const stored = await storage.read('automation', automationId)
      const record = stored === undefined ? undefined : asAutomation(stored).value
      if (record === undefined || record.status === 'canceled') {
        throw new ImpresarioError('CONFLICT', 'The automation of this run is canceled or deleted. Create a new one.')
      }
      if (from !== undefined && !isEnded(job)) {
        throw new ImpresarioError('CONFLICT', 'The run is open. Cancel it or wait for its end, then go on from a step.')
      }
      const { input } = startOf(job)
      const begins =
        from === undefined ? undefined : progressAt(record.definition.pipeline, runStateOf(job).progress, from)
      const launched = await launcher.launch({
        record,
        runId: nearId(random.id(), automationId),
        trigger: { kind: 'rerun', by: actor.id, rerunOf: runId },
        event: input.event,
        params: { ...input.params, ...params },
        isRepeated: true,
        ...(begins === undefined ? {} : { begins }),
      })
      if (launched.type === 'lost') continue
      await storage.sync()
      return launched
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The run could not be repeated: others changed its automation.')
  }
}

/** Where a run stands that has everything up to this step behind it. */
function progressAt({ steps }: Pipeline, { outputs, records }: RunProgress, from: string): RunProgress {
  const at = steps.findIndex(({ id }) => id === from)
  if (at === -1) {
    const known = steps.map(({ id }) => id).join(', ')
    throw new ImpresarioError('INPUT_REFUSED', `The pipeline has no step "${from}". It has ${known}.`)
  }
  const before = steps.slice(0, at)
  const ended = new Map(records.map((record) => [record.id, record]))
  const missing = before.find(({ id }) => ended.get(id)?.status !== 'succeeded' && ended.get(id)?.status !== 'skipped')
  if (missing !== undefined && !(missing.id in outputs)) {
    const message = `The run has no output of the step "${missing.id}", which comes before "${from}". Go on from there.`
    throw new ImpresarioError('CONFLICT', message)
  }
  const names = new Set(before.flatMap(({ id, saveAs }) => (saveAs === undefined ? [id] : [id, saveAs])))
  return {
    at,
    pending: undefined,
    outputs: Object.fromEntries(Object.entries(outputs).filter(([name]) => names.has(name))),
    records: before.flatMap(({ id }) => ended.get(id) ?? []),
    jumps: 0,
  }
}
