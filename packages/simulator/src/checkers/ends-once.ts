import { isEnded } from '@impresario/core'
import type { Entry, Version } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** [C-05] A job ends once, nothing follows its end, and its versions have no gaps. */
export function endsOnce(entries: readonly Entry[], stored: readonly Version[]): readonly Finding[] {
  const findings: Finding[] = []
  const report = (problem: string): void => {
    findings.push({ rule: 'endsOnce', problem })
  }
  const last = new Map<string, Version>()
  for (const entry of entries) {
    if (entry.type === 'reopened') {
      // A crash removes the newest commits: history continues from what was durable.
      last.clear()
      for (const version of entry.jobs) last.set(version.id, version)
    }
    if (entry.type !== 'committed') continue
    for (const version of entry.jobs) {
      const before = last.get(version.id)
      if (version.version !== (before?.version ?? 0) + 1) {
        report(`${version.id} went from version ${before?.version ?? 0} to ${version.version}`)
      }
      if (before !== undefined && isEnded(before.job)) {
        report(`${version.id} had ended as ${before.job.status} and became ${version.job.status}`)
      }
      last.set(version.id, version)
    }
  }
  for (const { id, version } of stored) {
    const seen = last.get(id)?.version ?? 0
    if (seen !== version) report(`${id} is stored with version ${version}, but version ${seen} was written last`)
    last.delete(id)
  }
  for (const id of last.keys()) report(`${id} was written and is not stored`)
  return findings
}
