import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'

/**
 * An empty body is no body, whatever type it claims to have: several HTTP libraries write `Content-Length: 0` together with
 * `application/octet-stream` on every request that has none. A body that is not empty must still be of a type that the
 * route reads.
 */
export function acceptEmptyBodies(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers } = request.raw
    // Before the type is looked at, so that one that cannot be read does no harm either.
    if (headers['content-length'] === '0' && headers['transfer-encoding'] === undefined) delete headers['content-type']
    done()
  })
  app.addContentTypeParser('*', (request, payload, done) => {
    // The length of a chunked body shows only when it is read.
    if (request.is404 || request.headers['transfer-encoding'] === undefined) {
      done(request.is404 ? null : unsupported(), undefined)
      return
    }
    isEmpty(payload).then(
      (empty) => done(empty ? null : unsupported(), undefined),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), undefined),
    )
  })
}

/** Resolves with the first byte, or with the end. */
function isEmpty(payload: Readable): Promise<boolean> {
  return new Promise((resolve, reject) => {
    payload.once('data', () => resolve(false))
    payload.once('end', () => resolve(true))
    payload.once('error', reject)
    payload.once('close', () => reject(new ImpresarioError('INVALID_REQUEST', 'The body ended too early.')))
  })
}

function unsupported(): ImpresarioError {
  return new ImpresarioError('UNSUPPORTED_MEDIA', 'Send JSON, with the content type application/json.')
}
