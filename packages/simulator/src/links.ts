import type { Chance } from './chance.ts'
import type { CallName, Link } from './connection.ts'
import type { Faults } from './faults.ts'
import { never } from './node.ts'
import type { Node } from './node.ts'
import type { Tally } from './tally.ts'

/** A call or its reply was lost. The caller cannot know which. */
export class Lost extends Error {
  override readonly name = 'Lost'
}

interface LinkParts {
  readonly node: Node
  readonly faults: Faults
  readonly chance: Chance
  readonly tally: Tally
}

/** A network between a process and the storage that it shares with others: slow, lossy, cut at the worst moment. */
export function remoteLink({ node, faults, chance, tally }: LinkParts): Link {
  const crashes = (mark: Parameters<Tally['sometimes']>[0]): boolean => {
    if (!chance.happens(faults.crash)) return false
    tally.sometimes(mark)
    node.die()
    return true
  }
  const carry = async <T>(call: CallName, run: () => Promise<T>): Promise<T> => {
    if (!node.isAlive) return never()
    await node.wait(chance.between(0, faults.latencyMs))
    if (crashes('fault: crash before a call')) return never()
    if (chance.happens(faults.pause)) {
      tally.sometimes('fault: engine paused')
      node.pause(chance.between(5_000, 60_000))
    }
    if (chance.happens(faults.lostRequest)) {
      tally.sometimes('fault: request lost')
      throw new Lost(call)
    }
    const answer = await run()
    if (crashes('fault: crash after a call')) return never()
    const isLost = chance.happens(faults.lostReply)
    if (faults.latencyMs > 0 || isLost || node.pausedUntil > node.world.now) {
      await node.wait(chance.between(0, faults.latencyMs))
    }
    if (isLost) {
      tally.sometimes('fault: reply lost')
      if (call === 'commit' && String(answer) === 'committed') tally.sometimes('commit reply lost and applied')
      throw new Lost(call)
    }
    return answer
  }
  const hint = (run: () => void): void => {
    if (chance.happens(faults.lostHint)) {
      tally.sometimes('fault: hint lost')
      return
    }
    node.world.after(chance.between(0, faults.latencyMs), () => node.whenRunning(run))
  }
  return { carry, hint }
}

/** The storage is in the process itself: calls take no time, and only the end of the process can interrupt them. */
export function localLink({ node, faults, chance, tally }: LinkParts): Link {
  const carry = async <T>(_call: CallName, run: () => Promise<T>): Promise<T> => {
    if (!node.isAlive) return never()
    if (chance.happens(faults.crash)) {
      tally.sometimes('fault: crash before a call')
      node.die()
      return never()
    }
    if (chance.happens(faults.pause)) {
      tally.sometimes('fault: engine paused')
      node.pause(chance.between(5_000, 60_000))
      await node.wait(0)
    }
    const answer = await run()
    // The process may have died while it waited for the disk.
    if (!node.isAlive) return never()
    if (chance.happens(faults.crash)) {
      tally.sometimes('fault: crash after a call')
      node.die()
      return never()
    }
    return answer
  }
  return {
    carry,
    hint: (run) => {
      if (node.isAlive) run()
    },
  }
}
