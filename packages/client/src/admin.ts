import { ask } from './asking.ts'
import type { ClientTransport } from './transport.ts'
import type { ConfiguredClient, LogLevelChange, Reloaded, System } from './views.ts'
import { fromWire } from './wire-case.ts'
import type * as wire from './wire-views.ts'

/** The running server: what it is, and changes of it. Needs the role of an admin. */
export class Admin {
  readonly #transport: ClientTransport

  constructor(transport: ClientTransport) {
    this.#transport = transport
  }

  /** Versions, storage and what it promises, leads and limits of the instance that answers. */
  async system(): Promise<System> {
    return ask<wire.SystemBody>(this.#transport.requests, { method: 'GET', path: ['admin', 'system'] })
  }

  /** The clients of the configuration, by id, without their tokens. */
  async clients(): Promise<readonly ConfiguredClient[]> {
    const path = ['admin', 'clients']
    return ask<readonly wire.ConfiguredClientBody[]>(this.#transport.requests, { method: 'GET', path })
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
