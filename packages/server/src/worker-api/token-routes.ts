import type { FastifyInstance, FastifyRequest } from 'fastify'
import { HEADERS, ImpresarioError } from '@impresario/protocol'
import type { RevokeReply, TokenReply } from '@impresario/protocol'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { headerOf } from '../auth/auth.ts'
import { hashToken } from '../runtime/secret.ts'
import type { Sockets } from './sockets.ts'
import type { WorkerAuth } from '../auth/worker-auth.ts'
import { WORKER_ROUTES } from './worker-route-table.ts'
import { hintedId, proofOf, workerOf } from '../auth/worker-identity.ts'

export interface TokenRoutesOptions {
  readonly auth: WorkerAuth
  readonly tokens: AccessTokens
  /** Who came in with a token that is given up is shown out. */
  readonly sockets: Pick<Sockets, 'lookAgain'>
}

/** The first release of the Python protocol package whose workers keep a refresh token. */
const FIRST_WITH_REFRESH = 13
const BETA = /^1\.0b(\d{1,3})$/

/** What a worker says here decides about its own tokens only, and is said with its credential. */
function knowsNoRefreshTokens({ headers }: FastifyRequest): boolean {
  const said = headers[HEADERS.wireVersion]
  const beta = typeof said === 'string' ? BETA.exec(said)?.[1] : undefined
  return beta !== undefined && Number(beta) < FIRST_WITH_REFRESH
}

/** Short-lived tokens for workers: sign in, renew, sign out. */
export function registerTokenRoutes(app: FastifyInstance, { auth, tokens, sockets }: TokenRoutesOptions): void {
  app.route({
    ...WORKER_ROUTES.token,
    handler: async (request): Promise<TokenReply> => {
      const proof = proofOf(request)
      const isSelfRenewing = knowsNoRefreshTokens(request)
      if (proof.by !== 'access token') {
        const workerId = isSelfRenewing ? request.workerId : workerOf(request)
        return tokens.issue({ workerId, credential: auth.credentialOf(proof), isSelfRenewing })
      }
      const renewed = await tokens.renew(proof.hash)
      if (renewed !== undefined) return renewed
      // Otherwise a stolen token that lasts an hour would last for ever.
      throw new ImpresarioError(
        'FORBIDDEN',
        'An access token cannot give another one. Use the refresh token, or the credential of the worker itself.',
      )
    },
  })

  app.route<{ Body: { refresh_token?: string } | null | undefined }>({
    ...WORKER_ROUTES.refresh,
    handler: async (request): Promise<TokenReply> => {
      auth.mustBeNear(request.headers)
      const token = request.body?.refresh_token ?? headerOf(request.headers, HEADERS.workerToken)
      if (token === undefined) throw new ImpresarioError('INVALID_REQUEST', 'refresh_token is required.')
      const renewed = await tokens.renew(hashToken(token), (record) => auth.isCurrent(record))
      if (renewed !== undefined) return renewed
      if (request.body?.refresh_token === undefined) {
        // An unknown token is reported as such, and counted: this route can be used for guessing too.
        await auth.recognise(request.headers, request.raw.socket)
        throw new ImpresarioError('INVALID_REQUEST', 'refresh_token is required.')
      }
      return tokens.refresh(token, hintedId(request), (record) => auth.isCurrent(record))
    },
  })

  app.route({
    ...WORKER_ROUTES.revoke,
    handler: async (request): Promise<RevokeReply> => {
      const proof = proofOf(request)
      const revoked =
        proof.by === 'access token'
          ? await tokens.revokeFamily(proof.family)
          : await tokens.revokeWorker(workerOf(request))
      sockets.lookAgain()
      return { status: 'revoked', revoked }
    },
  })
}
