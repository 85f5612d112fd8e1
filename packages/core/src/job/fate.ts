import { answerId, tryId } from './identity.ts'
import type { DeliveryRef } from './identity.ts'
import type { Job } from './job.ts'

/**
 * What became of a delivery that is not in its worker's hands any more.
 *
 * `answered`: the worker's own result ended it. `taken back`: the job was cancelled, the try ran out of time, or another
 * delivery of it was answered. `unknown`: the record does not say; it keeps only the newest moments of a job.
 *
 * A worker is told to stop what was taken back and nothing else. Telling it to stop a task whose result it has just sent
 * makes some workers lose a place for ever.
 */
export type Fate = 'answered' | 'taken back' | 'unknown'

export function fateOf(job: Job | undefined, ref: DeliveryRef): Fate {
  if (job === undefined) return 'unknown'
  const own = answerId(ref)
  const unanswered = tryId(ref)
  const others = `${unanswered}.`
  for (let index = job.trail.length - 1; index >= 0; index -= 1) {
    const delivery = job.trail[index]?.delivery
    if (delivery === undefined) continue
    if (delivery === own) return 'answered'
    if (delivery === unanswered || delivery.startsWith(others)) return 'taken back'
  }
  return job.takenBack?.includes(unanswered) === true ? 'taken back' : 'unknown'
}
