import type { Engine } from '@impresario/engine'
import type { HistoryBody, Json } from '@impresario/protocol'

/** Something that happened to a job. */
export interface HistoryEntry {
  /** Grows from entry to entry of a job. */
  readonly id: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly event: string
  readonly state?: string | undefined
  readonly previousState?: string | undefined
  readonly nextState?: string | undefined
  readonly workerId?: string | undefined
  readonly taskId?: string | undefined
  readonly attempt?: number | undefined
  readonly durationMs?: number | undefined
  readonly note?: string | undefined
  /** What the job looked like then, as far as it is small. */
  readonly snapshot?: Json | undefined
}

export interface HistoryReader {
  /** Oldest first, and only those after that id. Whether the caller may see the job is asked before. */
  ofJob(jobId: string, query: { readonly after?: number; readonly limit: number }): Promise<readonly HistoryEntry[]>
}

/** Entries of one millisecond that can be told apart; a job's record keeps fewer than that. */
const IDS_PER_MS = 1_000

/** The history without a database for it: the notable moments that a job's own record keeps, which are the newest. */
export function trailHistory(engine: Engine): HistoryReader {
  return {
    ofJob: async (jobId, { after = -1, limit }) => {
      const trail = (await engine.readJob(jobId))?.value.trail ?? []
      let last = -1
      const entries: HistoryEntry[] = []
      for (const entry of trail) {
        // Old entries are dropped, so their place in the list would not name them for long; their time does.
        last = Math.max(entry.at * IDS_PER_MS, last + 1)
        if (last > after) entries.push({ id: last, ...entry })
      }
      return entries.slice(0, limit)
    },
  }
}

export function historyBody(jobId: string, entry: HistoryEntry): HistoryBody {
  return {
    event_id: String(entry.id),
    job_id: jobId,
    timestamp: entry.at / 1_000,
    event_type: entry.event,
    state: entry.state ?? null,
    previous_state: entry.previousState ?? null,
    next_state: entry.nextState ?? null,
    worker_id: entry.workerId ?? null,
    task_id: entry.taskId ?? null,
    attempt_number: entry.attempt ?? null,
    duration_ms: entry.durationMs ?? null,
    note: entry.note ?? null,
    context_snapshot: entry.snapshot ?? null,
  }
}
