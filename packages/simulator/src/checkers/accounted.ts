import type { Entry, Version } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** The key with which a client requested a job; children have none. */
function keyOf({ job }: Version): string | undefined {
  const key = job.initialData['key']
  return job.parent === undefined && typeof key === 'string' ? key : undefined
}

/** [C-09] Every acknowledged job is stored, and every stored job was requested. A lost reply is not a lost job. */
export function accounted(entries: readonly Entry[], stored: readonly Version[]): readonly Finding[] {
  const findings: Finding[] = []
  const ids = new Set(stored.map(({ id }) => id))
  const attempted = new Set<string>()
  for (const entry of entries) {
    if (entry.type === 'attempted') attempted.add(entry.key)
    if (entry.type === 'acknowledged' && !ids.has(entry.jobId)) {
      findings.push({ rule: 'accounted', problem: `${entry.jobId} was acknowledged for "${entry.key}" and is lost` })
    }
  }
  for (const version of stored) {
    if (version.job.parent !== undefined) {
      if (!ids.has(version.job.parent.jobId)) findings.push(unexpected(version.id, 'its parent'))
      continue
    }
    const key = keyOf(version)
    if (key === undefined || !attempted.has(key)) findings.push(unexpected(version.id, 'anybody who asked for it'))
  }
  return findings
}

function unexpected(id: string, missing: string): Finding {
  return { rule: 'accounted', problem: `${id} is stored without ${missing}` }
}

/** [C-09] The same key always means the same job, and there is one job for it. */
export function idempotency(entries: readonly Entry[], stored: readonly Version[]): readonly Finding[] {
  const findings: Finding[] = []
  const named = new Map<string, string>()
  for (const entry of entries) {
    if (entry.type !== 'acknowledged') continue
    const before = named.get(entry.key)
    named.set(entry.key, entry.jobId)
    if (before !== undefined && before !== entry.jobId) {
      const problem = `"${entry.key}" was answered with ${before} and with ${entry.jobId}`
      findings.push({ rule: 'idempotency', problem })
    }
  }
  const held = new Map<string, string>()
  for (const version of stored) {
    const key = keyOf(version)
    if (key === undefined) continue
    const other = held.get(key)
    if (other !== undefined) {
      findings.push({ rule: 'idempotency', problem: `"${key}" has two jobs, ${other} and ${version.id}` })
    }
    held.set(key, version.id)
  }
  return findings
}
