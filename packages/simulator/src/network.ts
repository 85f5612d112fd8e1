import type { Engine } from '@impresario/engine'
import type { Chance } from './chance.ts'
import type { Faults } from './faults.ts'
import type { Fleet } from './fleet.ts'
import type { Tally } from './tally.ts'
import { asError } from './world.ts'
import type { World } from './world.ts'

/** No reply arrived: the caller cannot know whether the call was received. */
class Unanswered extends Error {
  override readonly name = 'Unanswered'
}

/** Why the server's side of a call is abandoned. */
const GONE = 'gone'

export interface CallOptions {
  readonly timeoutMs?: number
  /** The engine is notified when the caller disconnects: for calls that wait. */
  readonly isAbortable?: boolean
  /** The caller disconnects. */
  readonly signal?: AbortSignal | undefined
}

/** For calls that do not wait. */
const UNENDING = new AbortController().signal

interface NetworkParts {
  readonly world: World
  readonly fleet: Fleet
  readonly faults: Faults
  readonly tally: Tally
}

/**
 * Between clients or workers and whichever engine they reach. Messages and replies get lost; engines die in the middle.
 */
export class Network {
  readonly #parts: NetworkParts

  constructor(parts: NetworkParts) {
    this.#parts = parts
  }

  async call<T>(
    chance: Chance,
    run: (engine: Engine, signal: AbortSignal) => Promise<T>,
    { timeoutMs = 15_000, isAbortable = false, signal }: CallOptions = {},
  ): Promise<T> {
    const { world, fleet, faults, tally } = this.#parts
    await world.sleep(chance.between(0, faults.networkMs))
    const node = fleet.pick(chance)
    const isLost = chance.happens(faults.lostMessage)
    if (node === undefined || isLost) {
      if (isLost) tally.sometimes('fault: message lost')
      await world.sleep(chance.between(100, 1_500))
      throw new Unanswered('not reached')
    }
    return new Promise((resolve, reject) => {
      const server = isAbortable ? new AbortController() : undefined
      let isOver = false
      const finish = (settle: () => void): void => {
        if (isOver) return
        isOver = true
        timer.isCancelled = true
        unmourn()
        signal?.removeEventListener('abort', hangUp)
        settle()
      }
      const fail = (why: string): void =>
        finish(() => {
          server?.abort(GONE)
          reject(new Unanswered(why))
        })
      const hangUp = (): void => fail('hung up')
      const timer = world.after(timeoutMs, () => fail('timed out'))
      const unmourn = node.onDeath(() => fail('connection reset'))
      signal?.addEventListener('abort', hangUp, { once: true })
      const reply = (settle: () => void): void => {
        node.whenRunning(() => {
          if (isOver) return
          if (chance.happens(faults.lostAnswer)) {
            tally.sometimes('fault: answer lost')
            world.after(chance.between(100, 1_500), () => fail('answer lost'))
            return
          }
          world.after(chance.between(0, faults.networkMs), () => finish(settle))
        })
      }
      node.whenRunning(() => {
        run(node.engine, server?.signal ?? UNENDING).then(
          (answer) => reply(() => resolve(answer)),
          (error: unknown) => reply(() => reject(asError(error))),
        )
      })
    })
  }
}
