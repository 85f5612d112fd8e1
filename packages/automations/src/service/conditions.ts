import { isEnded, isoInstant, jsonObjectCopy, jsonSize, wallTime } from '@impresario/core'
import type { Clock, Item, Job, JobRequest, Lease, Log, Random, Storage, Stored } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import type { ConditionTrigger } from '../trigger/spec.ts'
import type { Actor } from './audit.ts'
import {
  conditionFrom,
  conditionId,
  conditionsOf,
  elapsed,
  evaluated,
  holdItem,
  probeItem,
  probeMark,
  putCondition,
} from './condition.ts'
import type { ConditionRecord, Evaluated, NamedCondition, Sight } from './condition.ts'
import type { Launcher } from './launcher.ts'
import { asAutomation, jobPriority, nearId } from './record.ts'
import type { AutomationRecord } from './record.ts'
import { PART_BLUEPRINT, runStateOf, startData } from './run-start.ts'

export interface ConditionsOptions {
  readonly storage: Storage
  readonly engine: Engine
  readonly launcher: Launcher
  /** Refuses what is not there for this actor. */
  readonly read: (id: string, actor: Actor) => Promise<AutomationRecord>
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

export interface ConditionView extends NamedCondition {
  readonly record: ConditionRecord
}

/** A probe is looked at so often; its end calls at once. */
const LOOK_MS = 2_000
const PROBE_MS_MIN = 60_000
const PROBE_MS_MAX = 600_000
const REPORT_BYTES_MAX = 65_536
const CONFLICTS_MAX = 20

/**
 * Evaluates condition triggers. The tool of a condition is called by a job, one at a time for each condition; its next call is
 * an item of the queue `firings`, so it happens once, whichever instance does it. What is reported from outside is evaluated
 * at once. Each look is one commit: the state of the condition, and the run or the logged skip that follows from it.
 */
export class Conditions {
  readonly #options: ConditionsOptions
  /** What serves the items of conditions, by their kind. */
  readonly served: Readonly<Record<string, (lease: Lease) => Promise<void>>>

  constructor(options: ConditionsOptions) {
    this.#options = options
    this.served = { probe: (lease) => this.#serve(lease), hold: (lease) => this.#serve(lease) }
  }

  /** How the conditions of an automation stand. */
  async list(id: string, actor: Actor): Promise<readonly ConditionView[]> {
    const record = await this.#options.read(id, actor)
    return Promise.all(
      conditionsOf(record).map(async (one) => ({ ...one, record: (await this.#stored(record, one)).value })),
    )
  }

  /** Takes values that an outside system reports, for all conditions that have no tool. */
  async report(id: string, output: Data, actor: Actor): Promise<readonly ConditionView[]> {
    const bytes = jsonSize(jsonObjectCopy({ output }, 'The report'))
    if (bytes > REPORT_BYTES_MAX) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `The report has ${bytes} bytes; ${REPORT_BYTES_MAX} are allowed.`)
    }
    const record = await this.#options.read(id, actor)
    const reported = conditionsOf(record).filter(({ trigger }) => trigger.tool === undefined)
    if (reported.length === 0) {
      const how = 'Give it a condition trigger without "uses".'
      throw new ImpresarioError('CONFLICT', `No condition of this automation takes reported values. ${how}`)
    }
    if (record.status !== 'active') {
      throw new ImpresarioError('CONFLICT', `The automation is ${record.status}. Resume it before you report values.`)
    }
    const views: ConditionView[] = []
    for (const one of reported) views.push({ ...one, record: await this.#reported(id, one, output, actor) })
    await this.#options.storage.sync()
    return views
  }

  async #reported(id: string, one: NamedCondition, output: Data, actor: Actor): Promise<ConditionRecord> {
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const automation = await this.#options.read(id, actor)
      const stored = await this.#stored(automation, one)
      const now = this.#now()
      const look = evaluated(stored.value, one.trigger, automation.definition.params, { output }, now)
      const { edge } = look.record
      const heldMs = one.trigger.forSeconds * 1_000 - (now - edge.since)
      const enqueue = edge.phase === 'pending' ? [holdItem(automation, one.at, heldMs)] : []
      const written = await this.#write({ automation, one, stored, look, output, by: actor.id, enqueue })
      if (written !== undefined) return written
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The condition could not be written: others changed it.')
  }

  async #serve(lease: Lease): Promise<void> {
    const { automationId, at, kind } = itemOf(lease)
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const found = await this.#options.storage.read('automation', automationId)
      const automation = found === undefined ? undefined : asAutomation(found).value
      const trigger = automation?.definition.triggers[at]
      const isWanted = trigger?.kind === 'condition' && (trigger.tool !== undefined) === (kind === 'probe')
      if (automation?.status !== 'active' || !isWanted) {
        await this.#options.storage.commit({ settle: lease })
        return
      }
      const one = { at, trigger }
      const stored = await this.#stored(automation, one)
      const served = { automation, one, stored, lease }
      if (await (kind === 'probe' ? this.#probe(served, trigger) : this.#hold(served))) return
    }
  }

  /** A reported value has held for some time. */
  async #hold(served: Served): Promise<boolean> {
    const { automation, one, stored, lease } = served
    const now = this.#now()
    const look = elapsed(stored.value, one.trigger, now)
    const { edge } = look.record
    const leftMs = one.trigger.forSeconds * 1_000 - (now - edge.since)
    const enqueue = edge.phase === 'pending' ? [holdItem(automation, one.at, leftMs)] : []
    const output = stored.value.seen?.values ?? {}
    return (await this.#write({ ...served, look, output, settle: lease, enqueue })) !== undefined
  }

  /** Calls the tool, or looks at what came of the call. */
  async #probe(served: Served, { tool }: ConditionTrigger): Promise<boolean> {
    const { automation, one, stored, lease } = served
    const { probe, ...rest } = stored.value
    if (probe === undefined) return this.#call(served, tool)
    const job = (await this.#options.storage.read('job', probe.jobId))?.value
    if (job !== undefined && !isEnded(job)) {
      const item = probeItem(automation, one.at, LOOK_MS)
      return (await this.#options.storage.commit({ settle: lease, enqueue: [item] })) === 'committed'
    }
    const sight = sightOf(job)
    const now = this.#now()
    const look = evaluated(rest, one.trigger, automation.definition.params, sight, now)
    const everyMs = (tool?.everySeconds ?? 0) * 1_000
    const enqueue = [probeItem(automation, one.at, Math.min(everyMs, probe.startedAt + everyMs - now))]
    const output = 'output' in sight ? sight.output : null
    const written = await this.#write({ ...served, look, output, settle: lease, enqueue, probeJob: probe.jobId })
    return written !== undefined
  }

  async #call(served: Served, tool: ConditionTrigger['tool']): Promise<boolean> {
    const { automation, one, stored, lease } = served
    if (tool === undefined) return true
    const now = this.#now()
    const jobId = nearId(this.#options.random.id(), automation.id)
    const outcome = await this.#options.engine.createJobWith(jobId, probeRequest(automation, one, jobId, now), {
      settle: lease,
      put: [putCondition({ ...stored.value, probe: { jobId, startedAt: now } }, stored.version + 1)],
      enqueue: [probeItem(automation, one.at, LOOK_MS)],
    })
    return outcome !== 'lost'
  }

  /** What was written; nothing when others were faster. The job of a probe that changed nothing is dropped. */
  async #write(looked: Looked): Promise<ConditionRecord | undefined> {
    const { automation, one, stored, look, output, settle, enqueue, by, probeJob } = looked
    const { storage, launcher, random } = this.#options
    const version = stored.version + 1
    if (look.outcome === 'quiet') {
      const put = [putCondition(look.record, version)]
      const drop = probeJob === undefined ? [] : [{ kind: 'job', id: probeJob } as const]
      const batch = { put, enqueue, drop, ...(settle === undefined ? {} : { settle }) }
      return (await storage.commit(batch)) === 'committed' ? look.record : undefined
    }
    const runId = nearId(random.id(), automation.id)
    const isFired = look.outcome === 'fires'
    const record = isFired ? { ...look.record, fired: { at: this.#now(), runId } } : look.record
    const launch = {
      record: automation,
      runId,
      trigger: { kind: 'condition', ...(by === undefined ? {} : { by }) } as const,
      event: eventOf(one, record, output),
      put: [putCondition(record, version)],
      enqueue,
      ...(settle === undefined ? {} : { settle }),
    }
    const launched = await (isFired ? launcher.launch(launch) : launcher.skip(launch, 'cooldown', record.fired?.runId))
    return launched.type === 'lost' ? undefined : record
  }

  async #stored(automation: AutomationRecord, one: NamedCondition): Promise<Stored<ConditionRecord>> {
    const stored = await this.#options.storage.read('condition', conditionId(automation.id, one.at))
    return conditionFrom(stored, automation, one)
  }

  #now(): number {
    return wallTime(this.#options.clock)
  }
}

interface Served {
  readonly automation: AutomationRecord
  readonly one: NamedCondition
  readonly stored: Stored<ConditionRecord>
  readonly lease: Lease
}

interface Looked extends Omit<Served, 'lease'> {
  readonly look: Evaluated
  readonly output: Data
  readonly enqueue: readonly Item[]
  readonly settle?: Lease
  readonly by?: string
  readonly probeJob?: string
}

/** Boundary: only `probeItem` and `holdItem` have written it. */
function itemOf({ payload }: Lease): { automationId: string; at: number; kind: 'probe' | 'hold' } {
  return payload as unknown as { automationId: string; at: number; kind: 'probe' | 'hold' }
}

/** What a pipeline reads as `event`. */
function eventOf({ at, trigger }: NamedCondition, { edge, seen }: ConditionRecord, output: Data): DataObject {
  const isSmall = jsonSize(jsonObjectCopy({ output }, 'The output')) <= REPORT_BYTES_MAX
  return {
    condition: trigger.expression,
    trigger: at,
    output: isSmall ? output : null,
    values: seen?.values ?? {},
    since: isoInstant(edge.since),
  }
}

function sightOf(job: Job | undefined): Sight {
  if (job === undefined) return { error: 'The call of the tool is gone.' }
  const { status, error, progress } = runStateOf(job)
  if (status === 'succeeded') return { output: progress.records[0]?.output ?? null }
  return { error: error?.message ?? job.failure?.message ?? `The call of the tool ended as "${job.status}".` }
}

function probeRequest(automation: AutomationRecord, one: NamedCondition, jobId: string, now: number): JobRequest {
  const { id, owner, definition } = automation
  const { uses = '', with: inputs = {}, everySeconds = 60 } = one.trigger.tool ?? {}
  const plain = { saveAs: undefined, if: undefined, timeoutSeconds: undefined, retry: undefined, forEach: undefined }
  const step = { id: 'probe', ...plain, onError: 'fail', body: { kind: 'tool', uses, with: inputs } } as const
  const input = {
    pipeline: { steps: [step] },
    params: definition.params,
    event: {},
    now: isoInstant(now),
    automation: { id, title: definition.title },
    run: { id: jobId, attempt: 1 },
    outer: { steps: {}, items: {} },
  }
  return {
    blueprint: PART_BLUEPRINT,
    client: { id: owner },
    initialData: startData({ input }),
    priority: jobPriority(definition),
    metadata: probeMark(id, one.at),
    executionTimeoutMs: Math.min(Math.max(everySeconds * 1_000, PROBE_MS_MIN), PROBE_MS_MAX),
  }
}
