import type { Clock, Lease, Log, Service, Storage } from '@impresario/core'
import { Pump } from '@impresario/engine'
import type { DataObject } from '@impresario/protocol'
import { EventListeners, seenEvent } from './event-listeners.ts'
import { asEvent, keptUntil, putEvent } from './event-log.ts'
import type { EventRun, PublishedEvent } from './event-log.ts'
import type { Launcher, Launched } from './launcher.ts'
import { asAutomation, derivedId } from './record.ts'
import type { Subscription } from './record.ts'
import { isApart, waitItemId } from './waiting-run.ts'

export interface EventPumpOptions {
  readonly storage: Storage
  readonly launcher: Launcher
  readonly clock: Clock
  readonly log: Log
}

const LEASE_MS = 60_000
const BATCH = 50
const IDLE_MS = 1_000
const CONFLICTS_MAX = 20
/** Runs of one event that its record names; there may be more. */
const RUNS_SHOWN_MAX = 100

/**
 * Brings events to the automations that listen. The id of a run follows from the event and the automation, so an event that
 * is looked at again after a crash starts nothing twice. The item leaves the queue when every automation has heard it.
 */
export class EventPump implements Service {
  readonly name = 'events'
  readonly #options: EventPumpOptions
  readonly #pump: Pump
  readonly #listeners: EventListeners
  #unwatch: (() => void) | undefined

  constructor(options: EventPumpOptions) {
    this.#options = options
    this.#listeners = new EventListeners(options)
    const { clock, log } = options
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round: () => this.#round() })
  }

  async start(): Promise<void> {
    this.#unwatch ??= this.#options.storage.watch('events', () => this.#pump.wake())
    await this.#pump.start()
  }

  async stop(): Promise<void> {
    this.#unwatch?.()
    this.#unwatch = undefined
    await this.#pump.stop()
  }

  tick(): Promise<{ readonly worked: number }> {
    return this.#pump.tick()
  }

  async #round(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const { storage, log } = this.#options
    const { leases, nextInMs } = await storage.claim('events', { limit: BATCH, leaseMs: LEASE_MS })
    await Promise.all(
      leases.map((lease) =>
        this.#deliver(lease).catch((error: unknown) =>
          log.error('an event could not be delivered and is tried again', { event: lease.id, error: String(error) }),
        ),
      ),
    )
    return { worked: leases.length, nextInMs }
  }

  async #deliver(lease: Lease): Promise<void> {
    const { storage, clock } = this.#options
    const stored = await storage.read('event', lease.id)
    if (stored === undefined) {
      await storage.commit({ settle: lease })
      return
    }
    const event = asEvent(stored.value)
    const seen = seenEvent(event)
    const offered = { event, seen, ...(isApart(seen) ? { eventUntil: keptUntil(event) } : {}) }
    const runs: EventRun[] = []
    const heard = new Set<string>()
    let isWaited = false
    let heldSince = clock.now()
    for await (const subscription of this.#listeners.of(event)) {
      // With many listeners this takes longer than a lease, and another instance would begin again and again.
      if (clock.now() - heldSince > LEASE_MS / 3) {
        heldSince = clock.now()
        if ((await storage.renew([lease], LEASE_MS))[0] === false) return
      }
      if (heard.has(subscription.automationId) || !this.#listeners.mayFit(event, subscription)) continue
      const run = await this.#offer(offered, subscription, lease.deliveries > 1)
      if (run === undefined) continue
      heard.add(subscription.automationId)
      isWaited ||= run.outcome === 'waiting'
      if (runs.length < RUNS_SHOWN_MAX) runs.push(run)
    }
    const waitedFor = isWaited && offered.eventUntil !== undefined ? { isWaitedFor: true } : {}
    await storage.commit({ settle: lease, put: [putEvent({ ...event, ...waitedFor, runs }, stored.version + 1)] })
  }

  async #offer(offered: Offered, subscription: Subscription, isAgain: boolean): Promise<EventRun | undefined> {
    const { storage, launcher } = this.#options
    const { event, seen, eventUntil } = offered
    const { automationId } = subscription
    const auditId = derivedId(event.at, `audit ${event.id} ${automationId}`, automationId)
    const runId = derivedId(event.at, `run ${event.id} ${automationId}`, automationId)
    if (isAgain && (await storage.read('audit', auditId)) !== undefined) {
      const [item] = await storage.peek('firings', [waitItemId(runId)])
      if (item !== undefined) return { automationId, runId, outcome: 'waiting' }
      const isThere = (await storage.read('job', runId)) !== undefined
      return { automationId, runId: isThere ? runId : undefined, outcome: isThere ? 'started' : 'skipped' }
    }
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const stored = await storage.read('automation', automationId)
      const record = stored === undefined ? undefined : asAutomation(stored).value
      if (record?.status !== 'active' || !this.#listeners.fits(event, subscription, record)) return undefined
      const kind = event.source === undefined ? 'event' : 'webhook'
      const trigger = { kind, eventId: event.id, by: event.owner } as const
      const apart = eventUntil === undefined ? {} : { eventUntil }
      const launched = await launcher.launch({ record, runId, trigger, event: seen, ...apart, auditId })
      if (launched.type !== 'lost') return { automationId, ...shown(launched) }
    }
    throw new Error(`The run of ${automationId} could not be written: others changed it all the time.`)
  }
}

interface Offered {
  readonly event: PublishedEvent
  /** What pipelines read of it. */
  readonly seen: DataObject
  /** Runs that wait read it from its record; see `isApart`. */
  readonly eventUntil?: number
}

function shown(launched: Exclude<Launched, { type: 'lost' }>): Omit<EventRun, 'automationId'> {
  return { runId: launched.runId, outcome: launched.type }
}
