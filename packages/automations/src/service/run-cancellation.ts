import { wallTime } from '@impresario/core'
import type { Clock, Put, Random } from '@impresario/core'
import type { Commanded, Engine } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import { putAudit } from './audit.ts'
import type { AuditEntry } from './audit.ts'
import { nearId } from './record.ts'

export interface CancellationParts {
  readonly engine: Engine
  readonly clock: Clock
  readonly random: Random
}

export interface Cancellation {
  readonly runId: string
  readonly automationId: string
  readonly owner: string
  readonly author: Pick<AuditEntry, 'actor' | 'onBehalfOf'>
  readonly reason: string | undefined
}

const CONFLICTS_MAX = 20

/** The audit entry of a run that is cancelled. */
export function cancellationEntry(
  { clock, random }: Pick<CancellationParts, 'clock' | 'random'>,
  { runId, automationId, owner, author, reason }: Cancellation,
): Put {
  return putAudit({
    id: nearId(random.id(), automationId),
    at: wallTime(clock),
    ...author,
    action: 'run.canceled',
    subject: automationId,
    owner,
    details: { run_id: runId, ...(reason === undefined ? {} : { reason }) },
  })
}

/** Cancels the job of a run, in one commit with its audit entry. One that has ended stays as it is, and nothing is written. */
export async function cancelRun(parts: CancellationParts, cancellation: Cancellation): Promise<Commanded> {
  const { runId, author, reason } = cancellation
  for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
    const entry = cancellationEntry(parts, cancellation)
    const commanded = await parts.engine.cancelJob(runId, author.actor, reason, [entry])
    if (commanded.type !== 'lost') return commanded
  }
  throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The run could not be cancelled: others changed it all the time.')
}
