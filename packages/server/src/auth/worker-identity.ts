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
    /** The worker that makes this request, once it is known. */
    workerId: string | undefined
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
  app.addHook('onRequest', async (request, reply) => {
    void reply.header(HEADERS.wireVersion, versionFor(request.headers))
    if (request.routeOptions.config.isProvenByBody === true) return
    request.workerProof = await auth.recognise(request.headers, request.raw.socket)
  })
  app.addHook('preValidation', async (request) => {
    const { config } = request.routeOptions
    if (config.isProvenByBody === true) return
    request.workerId = auth.identify(proofOf(request), hintedId(request))
    // An empty heartbeat says nothing that could be signed.
    if (config.signed === undefined || (request.method === 'PATCH' && isEmptyBody(request.body))) return
    const ignore = config.signed === 'event' ? EVENT_UNSIGNED : []
    request.freshness = await signatures.check(request.workerId, request.body, request.bodyText, ignore)
  })
}

/** The id from the path, the header or the body; where two of them differ the request is refused. */
export function hintedId(request: FastifyRequest): string | undefined {
  const { params, headers, body } = request
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
