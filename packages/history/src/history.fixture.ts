import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type { Clock, Log, LogFields } from '@impresario/core'
import { WriteRefusedError } from './history.ts'
import type { EventBatch, EventCount, HistoryEvent, HistoryStore, Retention } from './history.ts'

/** Longer than any pause between two attempts. */
const LONG_MS = 20_000

/** A clock that is advanced by hand. Short pauses end at once; longer sleeps wait until the clock is advanced. */
export class HandClock implements Clock {
  time = 1_700_000_000_000
  readonly #sleepers = new Set<{ readonly until: number; readonly resolve: () => void }>()

  now(): number {
    return this.time
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    if (ms < LONG_MS) {
      this.time += ms
      await yieldToOthers()
      return
    }
    await new Promise<void>((resolve) => {
      const sleeper = { until: this.time + ms, resolve }
      this.#sleepers.add(sleeper)
      signal.addEventListener('abort', () => {
        this.#sleepers.delete(sleeper)
        resolve()
      })
    })
  }

  advance(ms: number): void {
    this.time += ms
    for (const sleeper of this.#sleepers) {
      if (sleeper.until > this.time) continue
      this.#sleepers.delete(sleeper)
      sleeper.resolve()
    }
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

/** Resolves once the condition is true; checks again after a tick of the event loop. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await yieldToOthers()
}

/** A store that is unreachable while it is broken, and refuses events on request. */
export class BreakableStore implements HistoryStore {
  readonly written: HistoryEvent[] = []
  readonly batches: number[] = []
  isBroken = false
  refuses: string | undefined
  isWholeRefused = false
  tries = 0
  hasClosed = false
  onWrite: () => void = () => undefined
  /** Portions that are beyond the bounds, and how often one was requested. */
  beyond = 0
  trims = 0

  async open(): Promise<void> {
    if (this.isBroken) throw new Error('it cannot be opened')
  }

  async write({ number, events }: EventBatch): Promise<void> {
    this.tries += 1
    if (this.isBroken) throw new Error('the disk is full')
    if (events.some(({ event }) => event === this.refuses)) {
      throw new WriteRefusedError('I do not like it', { isPartly: !this.isWholeRefused })
    }
    this.batches.push(number)
    this.written.push(...events)
    this.onWrite()
  }

  async ofJob(): Promise<readonly never[]> {
    return []
  }

  async ofWorker(): Promise<readonly never[]> {
    return []
  }

  async list(): Promise<readonly never[]> {
    return []
  }

  async counts(): Promise<readonly EventCount[]> {
    return []
  }

  async trim(): Promise<number> {
    this.trims += 1
    if (this.isBroken) throw new Error('the disk is full')
    if (this.beyond === 0) return 0
    this.beyond -= 1
    return 1
  }

  async close(): Promise<void> {
    this.hasClosed = true
  }
}
