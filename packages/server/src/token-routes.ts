import type { FastifyInstance } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import type { RevokeReply, TokenReply } from '@impresario/protocol'
import type { AccessTokens } from './access-tokens.ts'
import type { Sockets } from './sockets.ts'
import type { WorkerAuth } from './worker-auth.ts'
import { ROUTES } from './worker-route-options.ts'
import { hintedId, proofOf, workerOf } from './worker-identity.ts'

export interface TokenRoutesOptions {
  readonly auth: WorkerAuth
  readonly tokens: AccessTokens
  /** Who came in with a token that is given up is shown out. */
  readonly sockets: Pick<Sockets, 'lookAgain'>
}

/** Short-lived tokens for workers: sign in, renew, sign out. */
export function registerTokenRoutes(app: FastifyInstance, { auth, tokens, sockets }: TokenRoutesOptions): void {
  app.post('/auth/token', ROUTES.token, async (request): Promise<TokenReply> => {
    const proof = proofOf(request)
    // Otherwise a stolen token that lasts an hour would last for ever.
    if (proof.by === 'access token') {
      throw new ImpresarioError(
        'FORBIDDEN',
        'An access token cannot give another one. Use the refresh token, or the credential of the worker itself.',
      )
    }
    return tokens.issue(workerOf(request), auth.credentialOf(proof))
  })

  app.post<{ Body: { refresh_token?: string } | null | undefined }>(
    '/auth/token/refresh',
    ROUTES.refresh,
    async (request): Promise<TokenReply> => {
      auth.mustBeNear(request.headers)
      const token = request.body?.refresh_token
      if (token === undefined) throw new ImpresarioError('INVALID_REQUEST', 'refresh_token is required.')
      return tokens.refresh(token, hintedId(request), (record) => auth.isCurrent(record))
    },
  )

  app.delete('/auth/token', ROUTES.revoke, async (request): Promise<RevokeReply> => {
    const proof = proofOf(request)
    const revoked =
      proof.by === 'access token'
        ? await tokens.revokeFamily(proof.family)
        : await tokens.revokeWorker(workerOf(request))
    sockets.lookAgain()
    return { status: 'revoked', revoked }
  })
}
