import { newJobId } from './job-id.ts'
import type { JobHandle } from './job.ts'
import type { ClientTransport } from './transport.ts'
import type { Schedule } from './views.ts'
import { fromWire } from './wire-case.ts'

/** Jobs by the calendar. A client sees the schedules whose jobs are its own, an admin all. */
export class Schedules {
  readonly #transport: ClientTransport
  readonly #handle: (jobId: string) => JobHandle

  constructor(transport: ClientTransport, handle: (jobId: string) => JobHandle) {
    this.#transport = transport
    this.#handle = handle
  }

  async list(): Promise<readonly Schedule[]> {
    return fromWire(await this.#transport.listSchedules())
  }

  /** When it fires next, and what it started last. */
  async get(name: string): Promise<Schedule> {
    return fromWire(await this.#transport.readSchedule(name))
  }

  /**
   * Starts its job now; its own times stay as they are. Needs the role of an admin. It is started once, also when an answer is
   * lost and the call is repeated; with a key of your own, also over several calls.
   */
  async run(name: string, options: { readonly idempotencyKey?: string | undefined } = {}): Promise<JobHandle> {
    return this.#handle(await this.#transport.runSchedule(name, options.idempotencyKey ?? newJobId()))
  }

  /** Nothing fires until it is resumed, also after a restart. Needs the role of an admin; so does `resume`. */
  async pause(name: string): Promise<Schedule> {
    return fromWire(await this.#transport.pauseSchedule(name))
  }

  /** Fires again from its next time on. Times that have passed meanwhile are skipped, and `recent` says so. */
  async resume(name: string): Promise<Schedule> {
    return fromWire(await this.#transport.resumeSchedule(name))
  }
}
