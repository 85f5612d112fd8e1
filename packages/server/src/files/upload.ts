import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import { liftDeadline } from '../http/request-deadline.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its body is a file: it is handed on piece by piece, and is never in memory as a whole. */
    readonly isFile?: boolean
  }
}

/** For a scope of its own: bodies of every type are files here. */
export function takeFiles(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
}

export interface Upload {
  readonly body: AsyncIterable<Uint8Array>
  /** As announced. */
  readonly bytes: number | undefined
  readonly sha256: string | undefined
  readonly signal: AbortSignal
}

/** The file that comes with a request. It may take as long as it needs, as long as something comes. */
export function uploadOf(request: FastifyRequest, reply: FastifyReply): Upload {
  const { headers, body } = request
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity') {
    throw new ImpresarioError('UNSUPPORTED_MEDIA', 'A file is kept as it comes: leave out Content-Encoding.')
  }
  const isChunked = headers['transfer-encoding'] !== undefined
  const bytes = isChunked ? undefined : Number(headers['content-length'] ?? 0)
  const abort = new AbortController()
  reply.raw.once('close', () => abort.abort(new ImpresarioError('INVALID_REQUEST', 'The connection was closed.')))
  liftDeadline(request.raw)
  const content = body instanceof Readable ? body : Readable.from([])
  return { body: watched(content), bytes, sha256: sha256Of(headers['x-content-sha256']), signal: abort.signal }
}

function sha256Of(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\da-f]{64}$/i.test(header)) return header
  throw new ImpresarioError('INVALID_REQUEST', 'X-Content-SHA256 must be 64 hexadecimal digits.')
}

/** Not with `for await` alone: leaving that early would cut the connection on which a refusal has to go out. */
async function* watched(body: Readable): AsyncGenerator<Uint8Array> {
  const pieces = body.iterator({ destroyOnReturn: false })
  try {
    for (;;) {
      const next = await withinStall(pieces.next())
      if (next.done === true) return
      yield next.value as Uint8Array
    }
  } catch (error) {
    if (
      error instanceof Error &&
      'code' in error &&
      (error.code === 'ECONNRESET' || error.code === 'ERR_STREAM_PREMATURE_CLOSE')
    ) {
      throw new ImpresarioError('INVALID_REQUEST', 'The body ended too early.')
    }
    throw error
  }
}

async function withinStall<T>(piece: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const stalled = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new ImpresarioError('REQUEST_TIMEOUT', 'Nothing of the file came for a while.')),
      LIMITS.fileStallMs,
    )
  })
  try {
    return await Promise.race([piece, stalled])
  } finally {
    clearTimeout(timer)
  }
}

/** How long what is left of a refused file may still come, so that its sender reads the refusal. */
const LINGER_MS = 2_000

/**
 * The rest of a refused file is thrown away for a moment; if more is to come then, the connection is closed. The answer does not
 * say that it will be: Node would close it with the answer, and a sender that is still at it would see no answer at all.
 */
export function refuseRest({ raw, body }: FastifyRequest): void {
  if (raw.complete) return
  if (body instanceof Readable) body.resume()
  else raw.resume()
  const { socket } = raw
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  timer.unref()
  const done = (): void => {
    clearTimeout(timer)
    // The connection goes on, and may bring many files that are refused.
    socket.off('close', done)
  }
  raw.once('end', done)
  socket.once('close', done)
}
