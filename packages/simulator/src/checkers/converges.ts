import { isEnded } from '@impresario/core'
import type { Version } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** [C-05] Once the faults have ended, every job ends. */
export function converges(stored: readonly Version[]): readonly Finding[] {
  return stored
    .filter(({ job }) => !isEnded(job))
    .map(({ id, job }) => ({
      rule: 'converges',
      problem: `${id} (${job.blueprint}) is still ${job.status} in "${job.state}", visit ${job.visit}`,
    }))
}
