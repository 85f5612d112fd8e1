import { CLIENT_PATHS, type ScheduleBody } from '@impresario/protocol'
import type { Connection } from './connection.ts'
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

  /** Starts its job now; its own times stay as they are. Needs the token of an admin. */
  async run(name: string): Promise<JobHandle> {
    const call = { method: 'POST', repeatable: false } as const
    const answer = await this.#connection.call(CLIENT_PATHS.scheduleRun(name), call)
    return this.#handle(believed<{ readonly job_id: string }>(answer.body).job_id)
  }
}

/** The boundary at which a server's answer is believed. */
function believed<T>(body: unknown): T {
  return body as T
}
