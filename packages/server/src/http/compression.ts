import { pipeline, Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '@impresario/core'
import { acceptedEncodings } from './accept-encoding.ts'
import type { Accepted } from './accept-encoding.ts'
import { chooseEncoding, compress, createCompressor } from './codec.ts'
import { addVary } from './cors.ts'
import { errorFields } from '../runtime/log.ts'

export interface CompressionOptions {
  readonly minBytes: number
  readonly log: Log
}

/** Texts shrink. Events must leave at once and not wait for a compressor to fill its window; the rest is packed already. */
const SHRINKS = /^(?:text\/(?!event-stream)|application\/(?:[\w.-]+\+)?(?:json|xml|javascript)|image\/svg\+xml)/i
const NO_TRANSFORM = /\bno-transform\b/i

/**
 * Compresses replies for clients that ask for it. Others cost one look at a header and at a length; workers of
 * the SDK are among them, since tasks are small and their way is mostly short.
 */
export function compressAnswers(app: FastifyInstance, options: CompressionOptions): void {
  app.addHook<Payload>('onSend', (request, reply, payload, done) => {
    const accepted = acceptedEncodings(headerText(request))
    const bytes = lengthOf(payload)
    const isLong = bytes === undefined || bytes >= options.minBytes || (accepted.refusesPlain && bytes > 0)
    if (!isLong || !mayShrink(reply)) {
      done(null, payload)
      return
    }
    addVary(reply, 'Accept-Encoding')
    if (accepted.encodings.length === 0) {
      done(null, payload)
      return
    }
    if (payload instanceof Readable) {
      done(null, streamed(payload, reply, accepted))
      return
    }
    const encoding = chooseEncoding(accepted.encodings, bytes ?? 0)
    if (encoding === undefined) {
      done(null, payload)
      return
    }
    const packed = (result: Buffer): void => {
      markEncoded(reply, encoding)
      done(null, result)
    }
    const failed = (error: unknown): void => {
      options.log.warn('an answer could not be compressed and is sent as it is', { encoding, ...errorFields(error) })
      done(null, payload)
    }
    try {
      const result = compress(encoding, typeof payload === 'string' ? Buffer.from(payload) : bufferOf(payload))
      if (result instanceof Promise) result.then(packed, failed)
      else packed(result)
    } catch (error) {
      failed(error)
    }
  })
}

type Payload = string | Uint8Array | Readable | null | undefined

function headerText(request: FastifyRequest): string | undefined {
  const header = request.headers['accept-encoding']
  return Array.isArray(header) ? header.join(',') : header
}

/** `undefined` for what comes piece by piece. */
function lengthOf(payload: Payload): number | undefined {
  if (typeof payload === 'string') return Buffer.byteLength(payload)
  if (payload === null || payload === undefined) return 0
  return payload instanceof Uint8Array ? payload.length : payload instanceof Readable ? undefined : 0
}

function bufferOf(payload: Payload): Buffer {
  return payload instanceof Uint8Array
    ? Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
    : Buffer.alloc(0)
}

function mayShrink(reply: FastifyReply): boolean {
  const { statusCode } = reply
  if (statusCode === 204 || statusCode === 206 || statusCode === 304 || reply.hasHeader('content-encoding')) {
    return false
  }
  return (
    SHRINKS.test(String(reply.getHeader('content-type') ?? '')) &&
    !NO_TRANSFORM.test(String(reply.getHeader('cache-control') ?? ''))
  )
}

function streamed(payload: Readable, reply: FastifyReply, accepted: Accepted): Readable {
  const compressor = createCompressor(accepted.encodings)
  if (compressor === undefined) return payload
  markEncoded(reply, compressor.encoding)
  // The reader of the compressor sees its end or its error; the callback of the pipeline has nothing left to do.
  return pipeline(payload, compressor.stream, () => {})
}

/** The bytes are others now: their length is unknown, and a tag that names exactly the old ones names them no more. */
function markEncoded(reply: FastifyReply, encoding: string): void {
  void reply.removeHeader('content-length').header('content-encoding', encoding)
  const tag = reply.getHeader('etag')
  if (typeof tag === 'string' && !tag.startsWith('W/')) void reply.header('etag', `W/${tag}`)
}
