import type { Entry, ItemRef } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** [F-05] Tokens increase, and a commit belongs to the newest claim of an item that is still the same. */
export function fenced(entries: readonly Entry[]): readonly Finding[] {
  const findings: Finding[] = []
  const report = (problem: string): void => {
    findings.push({ rule: 'fenced', problem })
  }
  const holders = new Map<string, number>()
  let newest = 0
  for (const entry of entries) {
    if (entry.type === 'claimed') {
      for (const lease of entry.leases) {
        if (lease.token <= newest) report(`token ${lease.token} for ${lease.id} is not newer than ${newest}`)
        newest = Math.max(newest, lease.token)
        holders.set(nameOf(lease), lease.token)
      }
    } else if (entry.type === 'reopened') {
      holders.clear()
      for (const lease of entry.leases) holders.set(nameOf(lease), lease.token)
    } else if (entry.type === 'committed') {
      const { settled } = entry
      if (settled !== undefined) {
        const holder = holders.get(nameOf(settled))
        if (holder !== settled.token) {
          report(`claim ${settled.token} of ${settled.id} was settled, but ${holder ?? 'nobody'} held it`)
        }
        holders.delete(nameOf(settled))
      }
      for (const item of [...entry.removed, ...entry.enqueued]) holders.delete(nameOf(item))
      for (const lease of entry.born) holders.set(nameOf(lease), lease.token)
    }
  }
  return findings
}

function nameOf({ queue, id }: ItemRef): string {
  return `${queue}/${id}`
}
