import { isoInstant, nextPage } from '@impresario/core'
import type { ListQuery, Log, Storage } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import type { DataObject } from '@impresario/protocol'
import { compileExpression } from '../expression/expression.ts'
import type { Expression } from '../expression/expression.ts'
import { topicPattern } from '../trigger/topic.ts'
import type { PublishedEvent } from './event-log.ts'
import { asAutomation, asSubscription, bucketsFor, hookBucket } from './record.ts'
import type { AutomationRecord, Subscription } from './record.ts'

const PAGE = 200

/** Finds the automations that listen to an event. */
export class EventListeners {
  readonly #options: { readonly storage: Storage; readonly log: Log }

  constructor(options: { readonly storage: Storage; readonly log: Log }) {
    this.#options = options
  }

  /** Every trigger whose topic fits, a page at a time. */
  async *of(event: PublishedEvent): AsyncGenerator<Subscription> {
    const { storage } = this.#options
    const bySource = event.source === undefined ? [] : [hookBucket(event.source)]
    for (const name of [...bucketsFor(event.topic), ...bySource]) {
      let before: string | undefined
      do {
        const owner = event.audience === 'all' ? {} : { owner: event.owner }
        const query: ListQuery = { name, limit: PAGE, ...owner, ...(before === undefined ? {} : { before }) }
        const found = await storage.list('subscription', query)
        for (const { value } of found) {
          const subscription = asSubscription(value)
          if (topicPattern(subscription.topic).matches(event.topic)) yield subscription
        }
        before = nextPage(found, PAGE)
      } while (before !== undefined)
    }
  }

  /** Ids of the automations that run for an event, as they stand now; at most `limit`. */
  async idsFor(event: PublishedEvent, limit: number): Promise<readonly string[]> {
    const ids = new Set<string>()
    for await (const subscription of this.of(event)) {
      const { automationId } = subscription
      if (ids.has(automationId) || !this.mayFit(event, subscription)) continue
      const stored = await this.#options.storage.read('automation', automationId)
      const record = stored === undefined ? undefined : asAutomation(stored).value
      if (record?.status === 'active' && this.fits(event, subscription, record)) ids.add(automationId)
      if (ids.size >= limit) break
    }
    return [...ids]
  }

  /** Whether a filter fits that reads nothing of its automation, which then need not be read. */
  mayFit(event: PublishedEvent, subscription: Subscription): boolean {
    const { filter } = subscription
    if (filter === undefined || filterOf(filter).paths.some(([root]) => root === 'params')) return true
    return this.#test(event, subscription, {})
  }

  fits(event: PublishedEvent, subscription: Subscription, record: AutomationRecord): boolean {
    return this.#test(event, subscription, record.definition.params)
  }

  /** A filter that cannot be computed for an event does not hold, and that is said in the log. */
  #test(event: PublishedEvent, { filter, automationId }: Subscription, params: DataObject): boolean {
    if (filter === undefined) return true
    try {
      return filterOf(filter).test({ event: seenEvent(event), params, now: isoInstant(event.at) })
    } catch (error) {
      if (!isImpresarioError(error)) throw error
      this.#options.log.warn('the filter of an automation could not be computed', {
        automation: automationId,
        event: event.id,
        error: error.message,
      })
      return false
    }
  }
}

/** It was checked when the automation was written. */
function filterOf(filter: string): Expression {
  return compileExpression(filter, ['event', 'params', 'now'])
}

/** What a pipeline reads as `event`. */
export function seenEvent({ id, topic, payload, at, owner, source }: PublishedEvent): DataObject {
  const base = { id, topic, payload, published_at: isoInstant(at), published_by: owner }
  return source === undefined ? base : { ...base, source }
}
