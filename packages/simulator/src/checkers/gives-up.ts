import { LIMITS } from '@impresario/protocol'
import type { Entry, Version } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** How many processes the handler of a job has crashed in each of its visits. */
type Deaths = Map<number, number>

/** [C-11] A handler that crashes its process is started a few times in each visit, and then waits for a person. */
export function givesUp(entries: readonly Entry[]): readonly Finding[] {
  const findings: Finding[] = []
  const jobs = new Map<string, Deaths>()
  const deathsOf = (id: string): Deaths => {
    const known = jobs.get(id) ?? new Map<number, number>()
    jobs.set(id, known)
    return known
  }
  const see = ({ id, job }: Version): void => {
    const deaths = deathsOf(id)
    // After a crash it may be an earlier visit again, because a person's retry was lost: later counts restart.
    for (const visit of deaths.keys()) if (visit > job.visit) deaths.delete(visit)
  }
  for (const entry of entries) {
    if (entry.type === 'committed' || entry.type === 'reopened') for (const version of entry.jobs) see(version)
    if (entry.type !== 'struck') continue
    // A process that was held up may run the handler of a visit that is over: it counts for that one.
    const { jobId, visit } = entry
    const deaths = deathsOf(jobId)
    const count = (deaths.get(visit) ?? 0) + 1
    deaths.set(visit, count)
    if (count > LIMITS.turnBegunMax) {
      findings.push({ rule: 'givesUp', problem: `${jobId} ended ${count} processes in visit ${visit}` })
    }
  }
  return findings
}
