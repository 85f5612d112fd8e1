import { setTimeout as pause } from 'node:timers/promises'
import type { Log, Storage } from '@impresario/core'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'

export interface Patience {
  /** Without a password: it is shown. */
  readonly address: string
  /** How long to wait for a storage that is not ready; zero: not at all. */
  readonly waitMs: number
  readonly log: Log
  /** Ends the waiting. */
  readonly signal: AbortSignal
}

const PAUSE_MS = 1_000
/** The log has one line at once, and then one in so many. */
const TOLD_EVERY = 10

/**
 * Opens a storage, and waits for one that is not ready: a database that is still starting, a replica that is about to be
 * promoted, a disk that is about to be cleared. What waiting does not mend, such as a wrong password, is refused at once.
 */
export async function openPatiently(open: () => Promise<Storage>, patience: Patience): Promise<Storage> {
  const { address, waitMs, log, signal } = patience
  const begun = performance.now()
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await open()
    } catch (error) {
      if (!isPassing(error)) throw error
      const waitedMs = performance.now() - begun
      const reason = error.message
      if (signal.aborted || waitedMs + PAUSE_MS > waitMs) throw notReady(patience, waitedMs, error)
      if (attempt % TOLD_EVERY === 0) {
        log.warn('the storage is not ready; waiting for it', {
          storage: address,
          reason,
          waits_up_to_s: Math.round(waitMs / 1_000),
        })
      }
      await pause(PAUSE_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

function isPassing(error: unknown): error is ImpresarioError {
  return isImpresarioError(error, 'STORAGE_UNAVAILABLE') || isImpresarioError(error, 'STORAGE_REFUSED')
}

function notReady({ address }: Patience, waitedMs: number, error: ImpresarioError): ImpresarioError {
  const waited = waitedMs < PAUSE_MS ? '' : ` after ${Math.round(waitedMs / 1_000)} s`
  const message = `The storage at ${address} is not ready${waited}: ${error.message} See that it runs and takes writes; STORAGE_WAIT_SECONDS says how long a start waits for it.`
  return new ImpresarioError(error.code, message, { cause: error })
}
