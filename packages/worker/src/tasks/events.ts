import { pause } from '@impresario/protocol'
import type { EventRequest } from '@impresario/protocol'
import { messageOf, type Log } from '../runtime/log.ts'
import { Backoff } from '../runtime/pause.ts'
import {
  peaceMs,
  TransportError,
  transportFailure,
  type WorkerSocket,
  type WorkerTransport,
} from '../transport/transport.ts'

interface EventSenderOptions {
  readonly transport: WorkerTransport
  readonly log: Log
  /** The line that is kept open, if there is one. */
  readonly socket: () => WorkerSocket | undefined
  readonly retryMs: number
  readonly rateLimitMs: number
  readonly onUnknownWorker: () => Promise<void>
}

const RETRY_MS_MAX = 30_000

/** Brings events to one orchestrator, over the socket while it is open and else over HTTP, until they have arrived. */
export class EventSender {
  readonly #options: EventSenderOptions

  constructor(options: EventSenderOptions) {
    this.#options = options
  }

  /** Resolves when the event has arrived. Rejects when it is refused, or when the signal aborts first. */
  async send(event: EventRequest, signal: AbortSignal, mayBeLost = false): Promise<void> {
    const { transport, log, retryMs, rateLimitMs } = this.#options
    const backoff = new Backoff(retryMs, RETRY_MS_MAX)
    while (!signal.aborted) {
      const delivered = (await this.#options.socket()?.send(event, mayBeLost)) ?? 'unknown'
      if (delivered === 'accepted') return
      if (delivered === 'refused') throw refused(event)
      try {
        await transport.event(event)
        return
      } catch (error) {
        const failure = transportFailure(error)
        if (failure === 'refused') throw error
        if (failure === 'unknown_worker') await this.#options.onUnknownWorker()
        const waitMs = Math.max(backoff.next(), peaceMs(error, rateLimitMs))
        log.debug('An event could not be sent yet.', { event_id: event.event_id, error: messageOf(error) })
        await pause(waitMs, signal)
      }
    }
    throw new TransportError('unavailable', `The event "${event.event_type}" was given up.`)
  }
}

function refused(event: EventRequest): TransportError {
  return new TransportError('refused', `The orchestrator refused the event "${event.event_type}".`)
}
