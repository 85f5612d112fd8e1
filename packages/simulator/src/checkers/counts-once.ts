import { isEnded, taskId } from '@impresario/core'
import type { Job } from '@impresario/core'
import type { Entry } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** [C-04] The end of a task counts once, and a fan-out collects each of its branches once. */
export function countsOnce(entries: readonly Entry[]): readonly Finding[] {
  const findings: Finding[] = []
  const report = (problem: string): void => {
    findings.push({ rule: 'countsOnce', problem })
  }
  const accepted = new Set<string>()
  const last = new Map<string, Job>()
  for (const entry of entries) {
    if (entry.type === 'accepted') {
      const name = `${taskId(entry.jobId, entry.visit, entry.branch)}, try ${entry.attempt}`
      if (accepted.has(name)) report(`two results were accepted for ${name}`)
      accepted.add(name)
    }
    if (entry.type === 'reopened') {
      last.clear()
      for (const { id, job } of entry.jobs) last.set(id, job)
    }
    if (entry.type !== 'committed') continue
    for (const { id, job } of entry.jobs) {
      const before = last.get(id)
      if (before !== undefined) for (const problem of stepProblems(before, job)) report(problem)
      last.set(id, job)
    }
  }
  return findings
}

function* stepProblems(before: Job, job: Job): Iterable<string> {
  // Turns that are taken together move a job several times in one commit. Each new state except the last records that
  // it began.
  const begun = job.trail.filter(({ event }) => event === 'state_started').length
  if (job.visit < before.visit || job.visit > before.visit + begun + 1) {
    yield `${job.id} went from visit ${before.visit} to ${job.visit}`
  }
  if (job.visit === before.visit) yield* branchProblems(before, job)
  if (job.visit === before.visit + 1 && before.wait?.kind === 'parallel' && job.aggregationResults !== undefined) {
    const sent = Object.keys(before.branches).map((name) => taskId(job.id, before.visit, name))
    const gathered = Object.keys(job.aggregationResults)
    if (sent.length !== gathered.length || sent.some((name) => !gathered.includes(name))) {
      yield `${job.id} sent out ${sent.length} branches and gathered ${gathered.length}`
    }
  }
}

function* branchProblems(before: Job, job: Job): Iterable<string> {
  if (isEnded(job) || job.status === 'quarantined') return
  for (const [name, branch] of Object.entries(before.branches)) {
    const after = job.branches[name]
    if (after === undefined) yield `${job.id} lost its branch ${name}`
    else if (branch.outcome !== undefined && after.outcome?.status !== branch.outcome.status) {
      yield `branch ${name} of ${job.id} had ended as ${branch.outcome.status} and changed`
    } else if (after.attempt < branch.attempt || after.attempt > branch.attempt + 1) {
      yield `branch ${name} of ${job.id} went from try ${branch.attempt} to ${after.attempt}`
    }
  }
}
