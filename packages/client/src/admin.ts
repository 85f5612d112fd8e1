import type { ClientTransport } from './transport.ts'
import type { LogLevelChange, Reloaded } from './views.ts'
import { fromWire } from './wire-case.ts'

/** Changes of the running server. Needs the role of an admin. */
export class Admin {
  readonly #transport: ClientTransport

  constructor(transport: ClientTransport) {
    this.#transport = transport
  }

  /** Reads the files of clients, workers and schedules again; a wrong one changes nothing, and the refusal says where. */
  async reload(): Promise<Reloaded> {
    return fromWire(await this.#transport.reload())
  }

  /** Changes the level of the log of the instance that answers, until its next start: `debug`, `info`, `warn`, `error`, `silent`. */
  async setLogLevel(level: string): Promise<LogLevelChange> {
    return fromWire(await this.#transport.setLogLevel(level))
  }
}
