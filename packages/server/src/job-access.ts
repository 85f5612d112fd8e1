import type { Job, Stored } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import { isAdmin } from './access.ts'
import type { Caller } from './access.ts'

/** Longer than any id of ours: a child's begins with that of its parent, sixteen deep. */
export const JOB_ID_CHARS_MAX = 800

/** The job, if it is the caller's own or the caller is an admin. Others do not exist for it. */
export async function visibleJob(engine: Engine, caller: Caller, jobId: string): Promise<Stored<Job>> {
  const stored = jobId.length <= JOB_ID_CHARS_MAX ? await engine.readJob(jobId) : undefined
  if (stored === undefined || !isVisible(caller, stored.value)) throw jobNotFound()
  return stored
}

export function isVisible(caller: Caller, job: Job): boolean {
  return job.client.id === caller.client.id || isAdmin(caller)
}

export function jobNotFound(): ImpresarioError {
  return new ImpresarioError('JOB_NOT_FOUND', 'Job not found')
}

/** Whose jobs a list shows: an admin sees everybody's, or those of the client that it names; others their own. */
export function ownerFilter(caller: Caller, wanted: string | undefined): { readonly owner?: string } {
  if (isAdmin(caller)) return wanted === undefined ? {} : { owner: wanted }
  const own = caller.client.id
  if (wanted === undefined || wanted === own) return { owner: own }
  throw new ImpresarioError('FORBIDDEN', '"owner" may name other clients only for the role admin.')
}
