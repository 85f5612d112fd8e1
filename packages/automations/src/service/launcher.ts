import { isoInstant, jsonObjectCopy, jsonSize, wallTime } from '@impresario/core'
import type { Batch, Clock, Item, JobRequest, LeaseRef, Log, Put, Random, Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { fairShare, LIMITS } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { textOf } from '../expression/values.ts'
import { compileTemplate } from '../template/template.ts'
import { putAudit, SYSTEM_ACTOR } from './audit.ts'
import type { Budgets } from './budgets.ts'
import { gateIdOf, isFull, opened, putGate, queued, readGate, WAITING_MAX, withoutRun } from './gate.ts'
import type { Gate } from './gate.ts'
import { jobPriority, nearId } from './record.ts'
import type { AutomationRecord } from './record.ts'
import { cancelRun } from './run-cancellation.ts'
import { runBlueprintName, startData } from './run-start.ts'
import type { RunProgress } from '../run/progress.ts'
import type { RunTrigger } from './run-start.ts'
import { countedBytes, WaitingRoom } from './waiting-room.ts'
import { untilLookMs, waitItemId } from './waiting-run.ts'
import type { WaitingRun } from './waiting-run.ts'

export interface LauncherOptions {
  readonly storage: Storage
  readonly engine: Engine
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly budgets: Pick<Budgets, 'admit'>
  /** What all waiting runs of one owner may bring. */
  readonly waitingBytesMax?: number | undefined
}

/** What wants a run. */
export interface Launch {
  readonly record: AutomationRecord
  readonly runId: string
  readonly trigger: RunTrigger
  /** What the pipeline reads as `event`. */
  readonly event: Data
  /** It is large, and can be read from the record of the event that the trigger names, until then at least. */
  readonly eventUntil?: number
  /** In place of single params of the automation. */
  readonly params?: DataObject
  /** What is written in the same commit, whatever becomes of the run. */
  readonly settle?: LeaseRef
  readonly put?: readonly Put[]
  readonly enqueue?: readonly Item[]
  /** The id of the audit entry, where the same launch may come again. */
  readonly auditId?: string
  /** It has waited for its place: overlap and dedupe were looked at before. */
  readonly isNext?: boolean
  /** A person wants it again: that it was there before is no reason against it. */
  readonly isRepeated?: boolean
  /** Where it begins, if not at the first step. */
  readonly begins?: RunProgress
  /** The trace of the request that wants it. */
  readonly tracing?: JobRequest['tracing']
}

export type SkipReason = 'overlap' | 'deduplicated' | 'budget' | 'cooldown'

/** `lost`: something that the commit depends on has changed; look again. */
export type Launched =
  | { readonly type: 'started' | 'waiting'; readonly runId: string }
  | { readonly type: 'skipped'; readonly reason: SkipReason; readonly runId: string | undefined }
  | { readonly type: 'lost' }

/**
 * The one way to a run, whatever set it off. Each launch ends in one commit as a run, a run that waits for its place, or a
 * logged skip, together with what the caller writes beside it.
 */
export class Launcher {
  readonly #options: LauncherOptions
  readonly #room: WaitingRoom

  constructor(options: LauncherOptions) {
    this.#options = options
    const { storage, clock, waitingBytesMax: bytesMax = LIMITS.waitingRunsOfOwnerBytesMax } = options
    this.#room = new WaitingRoom({ storage, clock, bytesMax })
  }

  /** One that waits already (`isNext`) and finds no place goes on waiting; nothing is written. */
  async launch(launch: Launch): Promise<Launched> {
    const { record, runId } = launch
    const dedupe = launch.isNext === true || launch.isRepeated === true ? undefined : this.#dedupeOf(launch)
    if (dedupe !== undefined) {
      const known = (await this.#options.storage.read('key', dedupe.id))?.value
      if (known !== undefined) return this.skip(launch, 'deduplicated', known.jobId)
    }
    const admission = await this.#options.budgets.admit(record, launch.isNext === true)
    if ('spent' in admission) return this.#refuse(launch, admission.spent)
    const beside = [...(dedupe === undefined ? [] : [dedupe]), ...admission.put]
    const gateId = gateIdOf(record)
    if (gateId === undefined) return this.#start(launch, beside, undefined)
    const gate = await readGate(this.#options.storage, gateId, record.definition.concurrency.limit)
    if (gate.open.includes(runId)) return { type: 'started', runId }
    const isQueued = gate.waiting.includes(runId)
    if (isQueued && launch.isNext !== true) return { type: 'waiting', runId }
    const isFree = !isFull(gate) && (gate.waiting.length === 0 || gate.waiting[0] === runId)
    if (isFree) return this.#start(launch, beside, gate)
    return this.#atClosedGate(launch, beside, gate)
  }

  async #atClosedGate(launch: Launch, beside: readonly Put[], gate: Gate): Promise<Launched> {
    const { record, runId } = launch
    const { overlap } = record.definition
    if (launch.isNext === true) return { type: 'waiting', runId }
    if (overlap === 'skip' || gate.waiting.length >= WAITING_MAX) return this.skip(launch, 'overlap', gate.open[0])
    if (overlap === 'restart' && gate.waiting.length === 0) {
      for (const one of gate.open) {
        await cancelRun(this.#options, {
          runId: one,
          automationId: record.id,
          owner: record.owner,
          author: { actor: SYSTEM_ACTOR },
          reason: `A newer run of the automation (${runId}) takes its place.`,
        })
      }
      const emptied = await readGate(this.#options.storage, gate.id, gate.limit)
      return isFull(emptied) ? { type: 'lost' } : this.#start(launch, beside, emptied)
    }
    const item = waitItem(launch, gate, this.#now())
    const bytes = jsonSize(item.payload)
    const share = Math.floor(fairShare(LIMITS.waitingRunsBytesMax, gate.waiting.length))
    if (bytes > share) return this.skip(launch, 'overlap', gate.open[0], tooLargeToWait(gate, share, bytes))
    const refusal = await this.#room.take(record.owner, bytes)
    if (refusal !== undefined) return this.skip(launch, 'overlap', gate.open[0], refusal)
    return this.#wait(launch, beside, queued(gate, runId, countedBytes(bytes), record.owner), item)
  }

  async #start(launch: Launch, beside: readonly Put[], gate: Gate | undefined): Promise<Launched> {
    const { runId, settle, put = [], enqueue = [] } = launch
    const gates = gate === undefined ? [] : [putGate(opened(gate, runId))]
    const outcome = await this.#options.engine.createJobWith(runId, requestOf(launch, gate?.id, this.#now()), {
      settle,
      put: [...put, ...beside, ...gates, this.#audit(launch, 'run.started', {})],
      enqueue,
    })
    return outcome === 'lost' ? { type: 'lost' } : { type: 'started', runId }
  }

  async #wait(launch: Launch, beside: readonly Put[], gate: Gate, item: Item): Promise<Launched> {
    const { runId, put = [], enqueue = [] } = launch
    const news = [putGate(gate), this.#audit(launch, 'run.queued', {})]
    return this.#commit(
      launch,
      { put: [...put, ...beside, ...news], enqueue: [...enqueue, item] },
      { type: 'waiting', runId },
    )
  }

  /** The budget is spent. A run that waited for its place gives it up. */
  async #refuse(launch: Launch, message: string): Promise<Launched> {
    const { record, runId, put = [] } = launch
    const gateId = launch.isNext === true ? gateIdOf(record) : undefined
    if (gateId === undefined) return this.skip(launch, 'budget', undefined, message)
    const gate = await readGate(this.#options.storage, gateId, record.definition.concurrency.limit)
    return this.skip({ ...launch, put: [...put, putGate(withoutRun(gate, runId))] }, 'budget', undefined, message)
  }

  /** Nothing runs, and that is on record. */
  skip(launch: Launch, reason: SkipReason, runId: string | undefined, message?: string): Promise<Launched> {
    const { put = [], enqueue = [] } = launch
    const why = message === undefined ? {} : { message }
    const details = { reason, ...why, ...(runId === undefined ? {} : { instead: runId }) }
    const batch = { put: [...put, this.#audit(launch, 'run.skipped', details)], enqueue }
    return this.#commit(launch, batch, { type: 'skipped', reason, runId })
  }

  async #commit({ settle }: Launch, batch: Batch, launched: Launched): Promise<Launched> {
    const whole = settle === undefined ? batch : { ...batch, settle }
    return (await this.#options.storage.commit(whole)) === 'committed' ? launched : { type: 'lost' }
  }

  #audit({ record, trigger, runId, auditId }: Launch, action: string, more: DataObject): Put {
    const { kind, scheduledFor, eventId, by, rerunOf } = trigger
    return putAudit({
      id: auditId ?? nearId(this.#options.random.id(), record.id),
      at: this.#now(),
      actor: by ?? SYSTEM_ACTOR,
      action,
      subject: record.id,
      owner: record.owner,
      details: {
        run_id: runId,
        trigger: kind,
        ...(scheduledFor === undefined ? {} : { scheduled_for: isoInstant(scheduledFor) }),
        ...(eventId === undefined ? {} : { event_id: eventId }),
        ...(rerunOf === undefined ? {} : { rerun_of: rerunOf }),
        ...more,
      },
    })
  }

  /** The record that keeps a second run with this key away while the window lasts. */
  #dedupeOf({ record, runId, event, params }: Launch): (Put & { readonly kind: 'key' }) | undefined {
    const { dedupe } = record.definition
    if (dedupe === undefined) return undefined
    const now = this.#now()
    const scope = { params: { ...record.definition.params, ...params }, event, now: isoInstant(now) }
    const key = textOf(compileTemplate(dedupe.key, ['params', 'event', 'now']).render(scope)).slice(0, 500)
    // Ids of clients' own keys never begin with "%dedupe".
    const id = `%dedupe/${record.id}/${key}`
    const value = { jobId: runId, fingerprint: '', createdAt: now }
    return { kind: 'key', id, version: 1, value, expiresMs: dedupe.windowSeconds * 1_000 }
  }

  #now(): number {
    return wallTime(this.#options.clock)
  }
}

function tooLargeToWait({ waiting }: Gate, share: number, bytes: number): string {
  return `${waiting.length} runs wait for their place. One more may bring ${share} bytes of params and event, and this one brings ${bytes}. Send less, or wait until some have run.`
}

/** At the end of the line. */
function waitItem(launch: Launch, gate: Gate, now: number): Item {
  const { record, runId, trigger, event, eventUntil, params = {}, begins, tracing } = launch
  const waiting: WaitingRun = {
    kind: 'waiting',
    automationId: record.id,
    runId,
    gate: gate.id,
    trigger,
    ...(eventUntil === undefined ? { event } : { eventUntil }),
    params,
    ...(begins === undefined ? {} : { begins }),
    ...(tracing === undefined ? {} : { tracing }),
    since: now,
  }
  const payload = jsonObjectCopy(waiting, 'The run that waits')
  return {
    queue: 'firings',
    id: waitItemId(runId),
    lane: record.owner,
    priority: jobPriority(record.definition),
    delayMs: untilLookMs(gate.waiting.length, 0),
    payload,
  }
}

function requestOf(launch: Launch, gate: string | undefined, now: number): JobRequest {
  const { record, runId, trigger, event, params = {}, begins, tracing } = launch
  const { id, owner, definition } = record
  const { timeoutSeconds, pipeline, retry, title } = definition
  const input = {
    pipeline,
    params: { ...definition.params, ...params },
    event,
    now: isoInstant(now),
    automation: { id, title },
    run: { id: runId, attempt: 1 },
    outer: { steps: {}, items: {} },
  }
  return {
    blueprint: runBlueprintName(id),
    client: { id: owner },
    initialData: startData({
      input,
      retry,
      trigger,
      ...(gate === undefined ? {} : { gate }),
      ...(begins === undefined ? {} : { begins }),
    }),
    priority: jobPriority(definition),
    metadata: { automation: id, title, trigger: trigger.kind },
    ...(tracing === undefined ? {} : { tracing }),
    ...(timeoutSeconds === undefined ? {} : { executionTimeoutMs: timeoutSeconds * 1_000 }),
  }
}
