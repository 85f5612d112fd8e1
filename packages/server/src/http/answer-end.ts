import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What is to be done when a connection closes; one listener for all requests of it. */
const atClose = new WeakMap<Socket, Set<() => void>>()

/** The answer is through, or will never be. */
export function isOver({ destroyed, req }: ServerResponse): boolean {
  return destroyed || req.socket.destroyed
}

/**
 * Calls `done` once when the answer is over: it is through, or its connection is gone. The event of the answer alone is not
 * enough: of several requests that came over one connection at once, only the first answer hears of its end, and whatever the
 * others hold would be held for ever. Gives a way to hear nothing of it.
 */
export function whenOver(raw: ServerResponse, done: () => void): () => void {
  if (isOver(raw)) {
    // A connection that is gone says so only once.
    done()
    return () => {}
  }
  const { socket } = raw.req
  let waiting = atClose.get(socket)
  if (waiting === undefined) {
    const all = new Set<() => void>()
    waiting = all
    atClose.set(socket, all)
    socket.once('close', () => {
      // Each leaves the set, and none comes to it: there are no more requests.
      for (const end of all) end()
    })
  }
  const others = waiting
  const forget = (): void => {
    raw.off('close', end)
    others.delete(end)
  }
  const end = (): void => {
    forget()
    done()
  }
  raw.once('close', end)
  others.add(end)
  return forget
}
