import { ask } from './asking.ts'
import type { RequestTransport } from './request-transport.ts'
import type { SavedView } from './views.ts'
import type { SavedViewBody } from '@impresario/protocol'

const PATH = 'views'

/** Filters of the job list under names. Every caller has its own. */
export class SavedViews {
  readonly #transport: RequestTransport

  constructor(transport: RequestTransport) {
    this.#transport = transport
  }

  /** By name. */
  list(): Promise<readonly SavedView[]> {
    return ask<readonly SavedViewBody[]>(this.#transport, { method: 'GET', path: [PATH] })
  }

  /** Replaces the one of the same name. */
  save(name: string, search: Readonly<Record<string, string>>): Promise<SavedView> {
    return ask<SavedViewBody>(this.#transport, {
      method: 'PUT',
      path: [PATH, name],
      body: { search },
      repeatable: true,
    })
  }

  async delete(name: string): Promise<void> {
    await this.#transport.ask({ method: 'DELETE', path: [PATH, name] })
  }
}
