import type { Clock, Log, LogFields } from '@impresario/core'
import type { HistoryEvent, HistoryStore, Retention } from './history.ts'

/** Time that is moved on by hand; nobody waits for it. */
export class HandClock implements Clock {
  time = 1_700_000_000_000

  now(): number {
    return this.time
  }

  async sleep(): Promise<void> {
    await Promise.resolve()
  }
}

export function recordingLog(): Log & { readonly errors: { message: string; fields: LogFields }[] } {
  const errors: { message: string; fields: LogFields }[] = []
  const quiet = (): void => undefined
  return {
    errors,
    debug: quiet,
    info: quiet,
    warn: quiet,
    error: (message, fields = {}) => {
      errors.push({ message, fields })
    },
  }
}

export const KEEP: Retention = { ageMs: 86_400_000, bytesMax: 1_000_000_000 }

export function anEvent(over: Partial<HistoryEvent> = {}): HistoryEvent {
  return { at: 1_700_000_000_000, event: 'state_started', jobId: 'job-1', ...over }
}

/** A store that refuses everything while it is broken. */
export class BreakableStore implements HistoryStore {
  readonly written: HistoryEvent[] = []
  isBroken = false
  tries = 0
  hasClosed = false
  onWrite: () => void = () => undefined
  /** Pieces that are beyond the bounds, and how often somebody has asked for one. */
  beyond = 0
  trims = 0

  async write(events: readonly HistoryEvent[]): Promise<void> {
    this.tries += 1
    if (this.isBroken) throw new Error('the disk is full')
    this.written.push(...events)
    this.onWrite()
  }

  async ofJob(): Promise<readonly never[]> {
    return []
  }

  async ofWorker(): Promise<readonly never[]> {
    return []
  }

  async trim(): Promise<number> {
    if (this.isBroken) throw new Error('the disk is full')
    this.trims += 1
    if (this.beyond === 0) return 0
    this.beyond -= 1
    return 1
  }

  async close(): Promise<void> {
    this.hasClosed = true
  }
}
