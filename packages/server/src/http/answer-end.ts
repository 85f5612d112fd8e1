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
  const others = endsOf(raw.req.socket)
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

/** What is still to be done when this connection closes. */
function endsOf(socket: Socket): Set<() => void> {
  const known = atClose.get(socket)
  if (known !== undefined) return known
  const all = new Set<() => void>()
  atClose.set(socket, all)
  socket.once('close', () => {
    // Each leaves the set, and none comes to it: there are no more requests.
    for (const end of all) end()
  })
  return all
}

/**
 * The same with as few objects as possible. `done` may be called twice, and is to call `forgetOver` when it is called first. Not
 * for an answer that is over already.
 */
export function onOver(raw: ServerResponse, done: () => void): void {
  raw.on('close', done)
  endsOf(raw.req.socket).add(done)
}

export function forgetOver(raw: ServerResponse, done: () => void): void {
  endsOf(raw.req.socket).delete(done)
}
