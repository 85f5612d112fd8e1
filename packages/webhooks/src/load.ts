/** What is under way to an endpoint from this process, and how fast it has been. */
interface Load {
  inFlight: number
  averageMs: number
  /** When the slots that were promised to waiting messages end. */
  bookedUntil: number
}

const FIRST_GUESS_MS = 500
const WAIT_MS_MIN = 100
const WAIT_MS_MAX = 60_000

/**
 * Bounds what goes to one endpoint at a time. A message that finds no room is told when its turn will probably come, each
 * later than the one before it: a long queue for a slow receiver comes back one by one, and not as a crowd every second.
 */
export class EndpointLoads {
  readonly #perEndpointMax: number
  readonly #loads = new Map<string, Load>()

  constructor(perEndpointMax: number) {
    this.#perEndpointMax = perEndpointMax
  }

  /** Takes a place, or says how long to wait for one. */
  enter(endpointId: string, now: number): { readonly waitMs: number } | undefined {
    const load = this.#loads.get(endpointId) ?? { inFlight: 0, averageMs: FIRST_GUESS_MS, bookedUntil: 0 }
    this.#loads.set(endpointId, load)
    if (load.inFlight < this.#perEndpointMax) {
      load.inFlight += 1
      return undefined
    }
    load.bookedUntil = Math.max(load.bookedUntil, now) + load.averageMs / this.#perEndpointMax
    return { waitMs: Math.ceil(Math.min(Math.max(load.bookedUntil - now, WAIT_MS_MIN), WAIT_MS_MAX)) }
  }

  leave(endpointId: string, durationMs: number | undefined): void {
    const load = this.#loads.get(endpointId)
    if (load === undefined) return
    load.inFlight -= 1
    if (durationMs !== undefined) load.averageMs = load.averageMs * 0.8 + durationMs * 0.2
    if (load.inFlight === 0) this.#loads.delete(endpointId)
  }
}
