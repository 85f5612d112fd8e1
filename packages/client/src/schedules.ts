import { CLIENT_PATHS, HEADERS, type ScheduleBody } from '@impresario/protocol'
import type { Connection } from './connection.ts'
import { newJobId } from './job-id.ts'
import type { JobHandle } from './job.ts'

/** Jobs by the calendar. A client sees the schedules whose jobs are its own, an admin all. */
export class Schedules {
  readonly #connection: Connection
  readonly #handle: (jobId: string) => JobHandle

  constructor(connection: Connection, handle: (jobId: string) => JobHandle) {
    this.#connection = connection
    this.#handle = handle
  }

  async list(): Promise<readonly ScheduleBody[]> {
    return believed((await this.#connection.call(CLIENT_PATHS.schedules, { repeatable: true })).body)
  }

  /** When it fires next, and what it started last. */
  async read(name: string): Promise<ScheduleBody> {
    return believed((await this.#connection.call(CLIENT_PATHS.schedule(name), { repeatable: true })).body)
  }

  /**
   * Starts its job now; its own times stay as they are. Needs the token of an admin. It is started once, also when an answer is
   * lost and the call is repeated; with a key of your own, also over several calls.
   */
  async run(name: string, options: { readonly idempotencyKey?: string | undefined } = {}): Promise<JobHandle> {
    const headers = { [HEADERS.idempotencyKey]: options.idempotencyKey ?? newJobId() }
    const call = { method: 'POST', headers, repeatable: true } as const
    const answer = await this.#connection.call(CLIENT_PATHS.scheduleRun(name), call)
    return this.#handle(believed<{ readonly job_id: string }>(answer.body).job_id)
  }
}

/** The boundary at which a server's answer is believed. */
function believed<T>(body: unknown): T {
  return body as T
}
