import type { Job, Stored } from '@impresario/core'
import { besideJobIdOf } from '@impresario/engine'
import type { Engine } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import { isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'

type JobReader = Pick<Engine, 'readJob'>

/** Longer than any id of ours: a child's begins with that of its parent, sixteen deep. */
export const JOB_ID_CHARS_MAX = 800

/** The job, if it is the caller's own or the caller is an admin. Others do not exist for it. */
export async function visibleJob(engine: JobReader, caller: Caller, jobId: string): Promise<Stored<Job>> {
  const stored = await findVisibleJob(engine, caller, jobId)
  if (stored === undefined) throw jobNotFound()
  return stored
}

/** A caller may have named an id that another client has: then its own job lies beside that one. */
async function findVisibleJob(engine: JobReader, caller: Caller, jobId: string): Promise<Stored<Job> | undefined> {
  const stored = jobId.length <= JOB_ID_CHARS_MAX ? await engine.readJob(jobId) : undefined
  if (stored === undefined || isVisible(caller, stored.value)) return stored
  const own = await engine.readJob(besideJobIdOf(jobId, caller.client.id))
  return own !== undefined && isVisible(caller, own.value) ? own : undefined
}

/** The id under which a job of the caller lies. */
export async function storedJobId(engine: JobReader, caller: Caller, jobId: string): Promise<string> {
  return (await findVisibleJob(engine, caller, jobId))?.value.id ?? jobId
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
