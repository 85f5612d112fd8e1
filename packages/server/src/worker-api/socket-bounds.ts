import { LIMITS } from '@impresario/protocol'

/** What a worker's socket may do. Apart from the sockets, so that its type needs no types of `ws`. */
export interface SocketBounds {
  readonly pingMs: number
  readonly bufferBytesMax: number
  readonly mistakesMax: number
  readonly framesPerSecond: number
  readonly bytesPerSecond: number
  readonly unboundMax: number
}

export const SOCKET_BOUNDS: SocketBounds = {
  pingMs: LIMITS.socketPingMs,
  bufferBytesMax: LIMITS.socketBufferBytesMax,
  mistakesMax: LIMITS.socketMistakesMax,
  framesPerSecond: LIMITS.socketFramesPerSecond,
  bytesPerSecond: LIMITS.socketBytesPerSecond,
  unboundMax: LIMITS.socketsUnboundMax,
}
