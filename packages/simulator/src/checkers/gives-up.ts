import { LIMITS } from '@impresario/protocol'
import type { Entry, Version } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** A job's current visit, and how many processes its handler has crashed in it. */
interface Visit {
  readonly visit: number
  deaths: number
}

/** [C-11] A handler that crashes its process is started a few times in each visit, and then waits for a person. */
export function givesUp(entries: readonly Entry[]): readonly Finding[] {
  const findings: Finding[] = []
  const visits = new Map<string, Visit>()
  const see = ({ id, job }: Version): void => {
    // After a crash it may be an earlier visit again, because a person's retry was lost: its count restarts.
    if (visits.get(id)?.visit !== job.visit) visits.set(id, { visit: job.visit, deaths: 0 })
  }
  for (const entry of entries) {
    if (entry.type === 'committed' || entry.type === 'reopened') for (const version of entry.jobs) see(version)
    if (entry.type !== 'struck') continue
    const present = visits.get(entry.jobId)
    if (present === undefined) continue
    present.deaths += 1
    if (present.deaths > LIMITS.turnBegunMax) {
      const problem = `${entry.jobId} ended ${present.deaths} processes in visit ${present.visit}`
      findings.push({ rule: 'givesUp', problem })
    }
  }
  return findings
}
