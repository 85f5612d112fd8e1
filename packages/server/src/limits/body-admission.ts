import { Transform } from 'node:stream'
import type { FastifyInstance, FastifyRequest, RequestPayload } from 'fastify'
import type { Admission, BodyPass } from './admission.ts'
import { isOver, whenOver } from '../http/answer-end.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** What its body takes up; nothing where there is none. */
    bodyPass: BodyPass | undefined
  }
  interface FastifyContextConfig {
    /** It asks for more work to be done, and is refused first when there is too much of it. */
    readonly isNewWork?: boolean
  }
}

/** A body up to here counts as a whole at once: sending it slowly takes up little, and nothing has to be counted. */
const SMALL_BYTES_MAX = 16_384

/**
 * Lets bodies in as far as there is memory for them, after the caller is known and before anything is read. A large one counts
 * as it arrives, so that slow senders take up no room in advance; and all count until their request is answered.
 */
export function admitBodies(app: FastifyInstance, admission: Admission): void {
  app.decorateRequest('bodyPass', undefined)
  app.addHook('preParsing', (request, reply, payload, done) => {
    try {
      const isNewWork = request.routeOptions.config.isNewWork === true
      // A file goes on piece by piece and takes up no memory.
      const expected = request.routeOptions.config.isFile === true ? 0 : expectedBytes(request)
      // The connection closed while the caller was looked up: nothing more comes, and no event would report the end.
      if (expected === 0 || isOver(reply.raw)) {
        if (isNewWork) admission.mustHaveTime()
        done(null, payload)
        return
      }
      const pass = admission.enterBody(expected ?? 0, isNewWork)
      request.bodyPass = pass
      whenOver(reply.raw, () => pass.leave())
      if (expected === undefined || expected > SMALL_BYTES_MAX) {
        done(null, counted(payload, pass))
        return
      }
      pass.add(expected)
      done(null, payload)
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  })
}

/** Nothing is known of a body that comes in chunks. */
function expectedBytes({ headers }: FastifyRequest): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined
  const length = Number(headers['content-length'] ?? 0)
  return Number.isFinite(length) ? length : 0
}

function counted(payload: RequestPayload, pass: BodyPass): RequestPayload {
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        pass.add(chunk.length)
        done(null, chunk)
      } catch (error) {
        // The rest is read and discarded: a client that cannot send it would never read the reply.
        payload.unpipe(counter)
        payload.resume()
        done(error instanceof Error ? error : new Error(String(error)))
      }
    },
  })
  // A body that is not read, as of an unknown path, may break too: an error without a listener ends the process.
  counter.on('error', () => {})
  payload.once('error', (error) => counter.destroy(error))
  payload.once('close', () => {
    if (!payload.readableEnded) counter.destroy()
  })
  return payload.pipe(counter)
}
