import type { TaskError } from '@impresario/protocol'
import type { Branch, TaskCall } from './job.ts'

/** What a try may still have of the time for the result, and how long it waits before it begins. */
interface NextTry {
  readonly at: number
  readonly delayMs: number
}

/**
 * When the result must be there, whatever the number of tries. Tasks whose timeouts are tried again have none: with them
 * the result timeout is that of each try.
 */
export function deadlineOf(call: TaskCall, at: number): Branch['deadlineAt'] {
  const { resultTimeoutMs, retryTimeouts } = call
  return resultTimeoutMs === undefined || retryTimeouts === true ? undefined : at + resultTimeoutMs
}

/**
 * How long the next try may take from the moment it is due. `none`: the deadline comes first. Instances differ in their
 * clocks, so that what is left is never taken for more than the whole.
 */
export function timeLeft({ deadlineAt }: Branch, call: TaskCall, next: NextTry): number | undefined | 'none' {
  const { resultTimeoutMs } = call
  if (deadlineAt === undefined || resultTimeoutMs === undefined) return resultTimeoutMs
  const leftMs = Math.min(deadlineAt - next.at, resultTimeoutMs) - next.delayMs
  return leftMs > 0 ? leftMs : 'none'
}

export interface Expiry {
  readonly at: number
  /** Whether a worker had this try. */
  readonly wasTaken: boolean
  readonly workerId?: string | undefined
}

/** Which of its time limits a try ran into, and how to say so. */
export function expiryOf(branch: Branch, call: TaskCall, expiry: Expiry): { limit: Limit; error: TaskError } {
  const limit = limitOf(branch, call, expiry)
  const before = branch.lastError === undefined ? '' : ` The try before it failed: ${branch.lastError.message}`
  return { limit, error: { code: 'TIMEOUT_ERROR', message: `${sentenceOf(limit, call, expiry)}${before}` } }
}

type Limit = 'dispatch' | 'result' | 'run'

/**
 * The storage says that an attempt has expired and whether a worker held it. Which limit that was follows from those that it
 * has. Where two are left, the shorter one of an attempt that was not claimed, and the time that has passed of one in a worker's
 * hands: there nothing but the words depends on it.
 */
function limitOf({ sentAt, deadlineAt }: Branch, call: TaskCall, { at, wasTaken }: Expiry): Limit {
  const { dispatchTimeoutMs, resultTimeoutMs, runTimeoutMs } = call
  const limitMs = wasTaken ? runTimeoutMs : dispatchTimeoutMs
  const limit = wasTaken ? 'run' : 'dispatch'
  if (limitMs === undefined) return 'result'
  if (resultTimeoutMs === undefined) return limit
  const since = sentAt ?? at
  const resultMs = deadlineAt === undefined ? resultTimeoutMs : deadlineAt - since
  const passedMs = wasTaken ? at - since : limitMs
  return passedMs >= resultMs ? 'result' : limit
}

function sentenceOf(limit: Limit, call: TaskCall, { wasTaken, workerId }: Expiry): string {
  const { type, dispatchTimeoutMs, resultTimeoutMs, runTimeoutMs, retryTimeouts } = call
  switch (limit) {
    case 'dispatch':
      return `No worker took "${type}" within its dispatch timeout${spanText(dispatchTimeoutMs)}.`
    case 'run': {
      const who = workerId === undefined ? 'The worker' : `The worker "${workerId}"`
      return `${who} did not finish "${type}" within its run timeout${spanText(runTimeoutMs)}.`
    }
    case 'result': {
      const since = retryTimeouts === true ? 'the dispatch of this try' : 'its first dispatch'
      const unheld = wasTaken ? '' : ' No worker had it at the end.'
      return `No result of "${type}" came within its result timeout${spanText(resultTimeoutMs)} from ${since}.${unheld}`
    }
  }
}

/** A job that was stored by an older version may lack the limit that ended its task. */
function spanText(ms: number | undefined): string {
  return ms === undefined ? '' : ` of ${ms / 1_000} s`
}
