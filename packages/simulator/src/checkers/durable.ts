import { isEnded, taskId } from '@impresario/core'
import type { Entry, Try, Version } from '../chronicle.ts'
import type { Finding } from './finding.ts'

type EntryOf<T extends Entry['type']> = Extract<Entry, { readonly type: T }>

/** What is known outside the storage about one try. */
interface KnownTry extends Try {
  readonly isEnded: boolean
  /** Of the newest delivery to a remote worker. */
  readonly token: number | undefined
}

/**
 * [C-09] Everything that was reported to a client or worker survives every crash: a reply, a delivered task, an
 * acknowledged result.
 */
export function durable(entries: readonly Entry[], stored: readonly Version[]): readonly Finding[] {
  const known = new Known()
  for (const entry of entries) {
    if (entry.type === 'told') known.tell(entry)
    else if (entry.type === 'delivered' || entry.type === 'accepted') known.hand(entry)
    else if (entry.type === 'claimed') known.claim(entry.leases)
    else if (entry.type === 'committed') known.claim(entry.born.map((lease) => ({ ...lease, deliveries: 1 })))
    else if (entry.type === 'reopened') known.reopen(entry)
  }
  known.compare(stored)
  return known.findings
}

class Known {
  readonly findings: Finding[] = []
  /** The newest version that was reported to any caller, by job. */
  readonly #versions = new Map<string, number>()
  readonly #tries = new Map<string, KnownTry>()
  /** The newest claim of each task. */
  readonly #claims = new Map<string, { readonly token: number; readonly deliveries: number | undefined }>()

  tell({ jobId, version }: EntryOf<'told'>): void {
    this.#versions.set(jobId, Math.max(version, this.#versions.get(jobId) ?? 0))
  }

  hand(entry: EntryOf<'delivered' | 'accepted'>): void {
    const { jobId, visit, branch, attempt } = entry
    const name = `${taskId(jobId, visit, branch)}.${attempt}`
    const before = this.#tries.get(name)
    const isEndedTry = entry.type === 'accepted' || before?.isEnded === true
    const token = entry.type === 'delivered' ? (entry.isLocal ? undefined : entry.token) : before?.token
    this.#tries.set(name, { jobId, visit, branch, attempt, isEnded: isEndedTry, token })
  }

  claim(leases: EntryOf<'claimed'>['leases']): void {
    for (const { queue, id, token, deliveries } of leases) {
      if (queue === 'tasks') this.#claims.set(id, { token, deliveries })
    }
  }

  reopen({ jobs, leases, deliveries }: EntryOf<'reopened'>): void {
    const byId = this.compare(jobs)
    const held = new Set(leases.map(({ token }) => token))
    for (const known of this.#tries.values()) {
      const { jobId, visit, branch, attempt, token } = known
      const id = taskId(jobId, visit, branch)
      const claim = this.#claims.get(id)
      if (token === undefined || claim?.token !== token || held.has(token)) continue
      // It was claimed again after its lease had ended, by a process that died before it got the reply.
      if ((deliveries?.get(id) ?? 0) > (claim.deliveries ?? Infinity)) continue
      if (isOpenTry(byId.get(jobId), known)) {
        this.#report(`try ${attempt} of ${id} was handed out, but its lease is lost`)
      }
    }
    this.#claims.clear()
    for (const { queue, id, token } of leases) {
      if (queue === 'tasks') this.#claims.set(id, { token, deliveries: deliveries?.get(id) })
    }
  }

  compare(versions: readonly Version[]): ReadonlyMap<string, Version> {
    const byId = new Map(versions.map((version) => [version.id, version]))
    for (const [id, version] of this.#versions) {
      const found = byId.get(id)?.version ?? 0
      if (found < version) this.#report(`version ${version} of ${id} was told, but only ${found} is stored`)
    }
    for (const known of this.#tries.values()) {
      if (hasReached(byId.get(known.jobId), known)) continue
      const what = known.isEnded ? 'a result was accepted' : 'a task was handed out'
      this.#report(
        `${what} for try ${known.attempt} in visit ${known.visit} of ${known.jobId}, which is not stored so far`,
      )
    }
    return byId
  }

  #report(problem: string): void {
    this.findings.push({ rule: 'durable', problem })
  }
}

function isOpenTry(version: Version | undefined, { visit, branch, attempt }: Try): boolean {
  const open = version?.job.visit === visit ? version.job.branches[branch] : undefined
  return open !== undefined && open.attempt === attempt && open.outcome === undefined
}

function hasReached(version: Version | undefined, known: KnownTry): boolean {
  if (version === undefined) return false
  const { job } = version
  if (isEnded(job) || job.visit > known.visit || job.status === 'quarantined') return true
  if (job.visit < known.visit) return false
  const branch = job.branches[known.branch]
  if (branch === undefined) return false
  if (branch.attempt > known.attempt || branch.outcome !== undefined) return true
  return branch.attempt === known.attempt && !known.isEnded
}
