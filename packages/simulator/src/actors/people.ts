import { isEnded } from '@impresario/core'
import type { Job } from '@impresario/core'
import type { Commanded, Engine } from '@impresario/engine'
import { IGNORED_REQUEST } from '../blueprints/stagecraft.ts'
import type { Chance } from '../chance.ts'
import type { Setting } from '../fleet.ts'
import type { Network } from '../network.ts'

export interface PeopleParts extends Setting {
  readonly network: Network
}

/** The people who answer approval requests, and the operator who handles quarantined jobs. */
export class People {
  readonly #parts: PeopleParts
  readonly #chance: Chance
  /** How often a job was sent back. */
  readonly #retries = new Map<string, number>()

  constructor(parts: PeopleParts) {
    this.#parts = parts
    this.#chance = parts.world.chance('people')
  }

  start(): void {
    void this.#rounds('waiting_for_human', (job) => this.#answer(job))
    void this.#rounds('quarantined', (job) => this.#mend(job))
  }

  async #rounds(status: string, handle: (job: Job) => Promise<void>): Promise<void> {
    const { world, network } = this.#parts
    for (;;) {
      await world.sleep(this.#chance.between(1_000, 4_000))
      try {
        const list = { statuses: [status], limit: 100 }
        const found = await network.call(this.#chance, (engine) => engine.listJobs(list))
        for (const { value } of found) await handle(value)
      } catch {
        // Retried in the next round.
      }
    }
  }

  async #answer(job: Job): Promise<void> {
    const { wait, id } = job
    if (wait?.kind !== 'human' || wait.message === IGNORED_REQUEST || this.#chance.happens(0.3)) return
    if (!(await this.#isWanted(job))) return
    const decision = this.#chance.happens(0.85) ? 'yes' : 'no'
    await this.#command(id, (engine) => engine.decideApproval(id, decision, 'somebody'))
  }

  /**
   * An approval of a child is not answered once its parent no longer waits for it: such a job must be cancelled, not
   * decided.
   */
  async #isWanted({ parent }: Job): Promise<boolean> {
    if (parent === undefined) return true
    const whole = await this.#parts.network.call(this.#chance, (engine) => engine.readJob(parent.jobId))
    return whole !== undefined && !isEnded(whole.value) && whole.value.visit === parent.visit
  }

  async #mend({ id }: Job): Promise<void> {
    const retries = this.#retries.get(id) ?? 0
    if (retries < 2 && this.#chance.happens(0.6)) {
      this.#retries.set(id, retries + 1)
      await this.#command(id, (engine) => engine.retryJob(id, 'the operator'))
    } else {
      await this.#command(id, (engine) => engine.discardJob(id, 'the operator'))
    }
  }

  async #command(id: string, run: (engine: Engine) => Promise<Commanded>): Promise<void> {
    const applied = await this.#parts.network.call(this.#chance, run)
    if (applied.type === 'applied') this.#parts.chronicle.add({ type: 'told', jobId: id, version: applied.version })
  }
}
