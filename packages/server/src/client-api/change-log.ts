import { randomBytes } from 'node:crypto'
import type { Changes, JobChange } from '@impresario/engine'
import { LIMITS } from '@impresario/protocol'
import type { ChangesBody } from '@impresario/protocol'

/** One thing that changed: a job, more jobs of an owner or of any, or workers. */
type Entry =
  | { readonly kind: 'job'; readonly job: JobChange; readonly bytes: number }
  | { readonly kind: 'more'; readonly owner: string | undefined; readonly bytes: number }
  | { readonly kind: 'workers'; readonly bytes: number }

/** What an object takes beside its texts. */
const ENTRY_BYTES = 160

/**
 * The newest changes, numbered, for all streams of this process together: a stream holds no more than the number of the
 * last entry that it has sent. It is bounded in entries and in bytes; the oldest go first, and a stream that would need
 * them is told to read everything again.
 */
export class ChangeLog {
  /** Numbers of another process, or of another life of this one, mean nothing here. */
  readonly #life = randomBytes(6).toString('base64url')
  readonly #entries: (Entry | undefined)[] = []
  readonly #entriesMax: number
  readonly #bytesMax: number
  #oldest = 1
  #newest = 0
  #bytes = 0

  constructor(bounds: { readonly entriesMax?: number; readonly bytesMax?: number } = {}) {
    this.#entriesMax = bounds.entriesMax ?? LIMITS.changesKeptMax
    this.#bytesMax = bounds.bytesMax ?? LIMITS.changesBytesMax
  }

  /** The number of the newest entry. */
  get newest(): number {
    return this.#newest
  }

  get bytes(): number {
    return this.#bytes
  }

  add({ jobs, more, workers }: Changes): void {
    for (const job of jobs) {
      const { jobId, status, owner, blueprint } = job
      this.#push({ kind: 'job', job, bytes: bytesOf(jobId, status, owner, blueprint) })
    }
    for (const owner of more === 'all' ? [undefined] : more) {
      this.#push({ kind: 'more', owner, bytes: bytesOf(owner ?? '') })
    }
    if (workers) this.#push({ kind: 'workers', bytes: ENTRY_BYTES })
  }

  /** Forgets everything: what is not listened to leaves gaps. */
  clear(): void {
    this.#newest += 1
    this.#oldest = this.#newest + 1
    this.#entries.length = 0
    this.#bytes = 0
  }

  idOf(number: number): string {
    return `${this.#life}-${number}`
  }

  /** The number of an id, if everything after it is still here. */
  numberOf(id: string): number | undefined {
    const { life, number } = /^(?<life>[\w-]{8})-(?<number>\d{1,15})$/.exec(id)?.groups ?? {}
    const found = life === this.#life ? Number(number) : Number.NaN
    return found >= this.#oldest - 1 && found <= this.#newest ? found : undefined
  }

  /** What `owner` may see of what came after this number; `gone` if a part of it is here no more. Without an owner, all of it. */
  since(number: number, owner: string | undefined): ChangesBody | 'gone' {
    if (number < this.#oldest - 1) return 'gone'
    const jobs = new Map<string, JobChange>()
    let hasMore = false
    let hasWorkers = false
    let bytes = 0
    for (let at = number + 1; at <= this.#newest; at += 1) {
      const entry = this.#entries[at % this.#entriesMax]
      if (entry?.kind === 'workers') hasWorkers = true
      if (entry?.kind === 'more') hasMore ||= owner === undefined || entry.owner === undefined || entry.owner === owner
      if (entry?.kind !== 'job' || (owner !== undefined && entry.job.owner !== owner)) continue
      const { job } = entry
      const known = jobs.get(job.jobId)
      if (known !== undefined) {
        if (known.version < job.version) jobs.set(job.jobId, job)
      } else if (bytes + entry.bytes > LIMITS.changeMessageBytesMax) {
        hasMore = true
      } else {
        bytes += entry.bytes
        jobs.set(job.jobId, job)
      }
    }
    return { jobs: [...jobs.values()].map(wireChange), more: hasMore, workers: hasWorkers }
  }

  #push(entry: Entry): void {
    this.#newest += 1
    while (this.#newest - this.#oldest >= this.#entriesMax || this.#bytes + entry.bytes > this.#bytesMax) {
      if (this.#oldest >= this.#newest) break
      const slot = this.#oldest % this.#entriesMax
      this.#bytes -= this.#entries[slot]?.bytes ?? 0
      this.#entries[slot] = undefined
      this.#oldest += 1
    }
    this.#entries[this.#newest % this.#entriesMax] = entry
    this.#bytes += entry.bytes
  }
}

function bytesOf(...texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length * 2, ENTRY_BYTES)
}

function wireChange({ jobId, version, status, owner, blueprint }: JobChange): ChangesBody['jobs'][number] {
  return { job_id: jobId, version, status, owner, blueprint_name: blueprint }
}
