import { isEnded } from '@impresario/core'
import type { Entry, Try, Version } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** [C-09] What somebody was told survives every crash: an answer, a task that was handed out, a receipt for a result. */
export function durable(entries: readonly Entry[], stored: readonly Version[]): readonly Finding[] {
  const findings: Finding[] = []
  const report = (problem: string): void => {
    findings.push({ rule: 'durable', problem })
  }
  /** The newest version that anybody knows of, by job. */
  const told = new Map<string, number>()
  const tries = new Map<string, Try & { readonly isEnded: boolean }>()
  const compare = (versions: readonly Version[]): void => {
    const byId = new Map(versions.map((version) => [version.id, version]))
    for (const [id, version] of told) {
      const found = byId.get(id)?.version ?? 0
      if (found < version) report(`version ${version} of ${id} was told, but only ${found} is stored`)
    }
    for (const known of tries.values()) {
      if (!hasReached(byId.get(known.jobId), known)) {
        const what = known.isEnded ? 'a result was accepted' : 'a task was handed out'
        report(`${what} for try ${known.attempt} in visit ${known.visit} of ${known.jobId}, which is not stored so far`)
      }
    }
  }
  for (const entry of entries) {
    if (entry.type === 'told') told.set(entry.jobId, Math.max(entry.version, told.get(entry.jobId) ?? 0))
    if (entry.type === 'delivered' || entry.type === 'accepted') {
      const { jobId, visit, branch, attempt } = entry
      const name = `${jobId}.${visit}.${branch}.${attempt}`
      if (entry.type === 'accepted' || !tries.has(name)) {
        tries.set(name, { jobId, visit, branch, attempt, isEnded: entry.type === 'accepted' })
      }
    }
    if (entry.type === 'reopened') compare(entry.jobs)
  }
  compare(stored)
  return findings
}

function hasReached(version: Version | undefined, known: Try & { readonly isEnded: boolean }): boolean {
  if (version === undefined) return false
  const { job } = version
  if (isEnded(job) || job.visit > known.visit || job.status === 'quarantined') return true
  if (job.visit < known.visit) return false
  const branch = job.branches[known.branch]
  if (branch === undefined) return false
  if (branch.attempt > known.attempt || branch.outcome !== undefined) return true
  return branch.attempt === known.attempt && !known.isEnded
}
