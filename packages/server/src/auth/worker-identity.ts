import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Log } from '@impresario/core'
import { EVENT_UNSIGNED, HEADERS, ImpresarioError, isImpresarioError, isJsonObject } from '@impresario/protocol'
import { versionFor } from '../worker-protocol/generation.ts'
import { RefusedWorkers } from './refused-workers.ts'
import type { Freshness, Signatures } from './signatures.ts'
import { isEmptyBody } from '../worker-protocol/wire-worker.ts'
import type { Proof, WorkerAuth } from './worker-auth.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** How it has shown who it is. */
    workerProof: Proof | undefined
    /** What its signature says of the message. */
    freshness: Freshness
  }
}

export interface IdentityOptions {
  readonly auth: WorkerAuth
  readonly signatures: Signatures
  readonly log: Log
}

/**
 * Lets workers in: recognises them before the body is read, then holds what the body and the path say against it, and
 * checks the signatures of those that sign.
 */
export function identifyWorkers(app: FastifyInstance, { auth, signatures, log }: IdentityOptions): void {
  const refused = new RefusedWorkers(log, () => performance.now())
  app.addHook('onError', async (request, _reply, error) => {
    if (!isImpresarioError(error, 'UNAUTHENTICATED') && !isImpresarioError(error, 'FORBIDDEN')) return
    refused.note({ workerId: namedId(request), address: request.ip, reason: error.message })
  })
  app.decorateRequest('workerId', undefined)
  app.decorateRequest('workerProof', undefined)
  app.decorateRequest('freshness', 'unsigned')
  // Polls and heartbeats of thousands of workers come through here: no promise is made unless one is waited for.
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header(HEADERS.wireVersion, versionFor(request.headers))
    if (request.routeOptions.config.isProvenByBody === true) {
      done()
      return
    }
    const proven = (proof: Proof): void => {
      request.workerProof = proof
      done()
    }
    try {
      const proof = auth.recognise(request.headers, request.raw.socket)
      if (proof instanceof Promise) proof.then(proven, done)
      else proven(proof)
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  })
  app.addHook('preValidation', (request, _reply, done) => {
    const { config } = request.routeOptions
    if (config.isProvenByBody === true) {
      done()
      return
    }
    try {
      request.workerId = auth.identify(proofOf(request), hintedId(request))
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
      return
    }
    // An empty heartbeat says nothing that could be signed.
    if (config.signed === undefined || (request.method === 'PATCH' && isEmptyBody(request.body))) {
      done()
      return
    }
    const ignore = config.signed === 'event' ? EVENT_UNSIGNED : []
    signatures.check(request.workerId, request.body, request.bodyText, ignore).then((freshness) => {
      request.freshness = freshness
      done()
    }, done)
  })
}

/** The id from the path, the header or the body; where two of them differ the request is refused. */
export function hintedId({
  params,
  headers,
  body,
}: Pick<FastifyRequest, 'params' | 'headers' | 'body'>): string | undefined {
  const inPath = isJsonObject(params) ? params['workerId'] : undefined
  const inHeader = headers[HEADERS.workerId]
  const inBody = isJsonObject(body) ? body['worker_id'] : undefined
  const hints = [inPath, inHeader, inBody].filter((hint) => typeof hint === 'string' && hint !== '')
  const [first] = hints
  if (typeof first !== 'string') return undefined
  if (hints.some((hint) => hint !== first)) {
    throw new ImpresarioError('FORBIDDEN', 'The worker ids of the path, the header and the body differ.', {
      details: { reason: 'identity' },
    })
  }
  return first
}

/** The id that a refused request names; the body may not have been read. */
function namedId({ params, headers }: FastifyRequest): string | undefined {
  const id = (isJsonObject(params) ? params['workerId'] : undefined) ?? headers[HEADERS.workerId]
  return typeof id === 'string' ? id : undefined
}

export function proofOf({ workerProof }: FastifyRequest): Proof {
  if (workerProof === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'Missing X-Worker-Token header')
  return workerProof
}

export function workerOf({ workerId }: FastifyRequest): string {
  if (workerId === undefined) {
    throw new ImpresarioError('INVALID_REQUEST', 'worker_id is required, in the body or as X-Worker-ID.')
  }
  return workerId
}
