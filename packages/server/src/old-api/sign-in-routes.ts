import type { FastifyInstance, FastifyReply } from 'fastify'
import { wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { z } from 'zod'
import { isExpired } from '../auth/agent-book.ts'
import type { AgentBook } from '../auth/agent-book.ts'
import type { AgentRecord } from '../auth/agent-record.ts'
import type { AgentSessions, SessionPair } from '../auth/agent-sessions.ts'
import { notSignedIn } from './agent-routes.ts'
import { operation } from './answer.ts'
import { readBody } from './input.ts'
import { openRoute } from './old-route.ts'
import { shownScopes } from './old-scopes.ts'

export interface SignInRoutesOptions {
  readonly agents: AgentBook
  readonly agentSessions: AgentSessions
  readonly clock: Clock
}

const tokenRequest = z.object({
  agent_id: z.string().min(1).max(200),
  agent_secret: z.string().min(1).max(500).nullish(),
})
const refreshRequest = z.object({ refresh_token: z.string().min(1).max(10_000) })
const PROVEN = openRoute(true)

/** Short-lived tokens for the secret of an agent. */
export function registerSignInRoutes(app: FastifyInstance, options: SignInRoutesOptions): void {
  const { agents, agentSessions, clock } = options

  app.post('/agents/auth/token', PROVEN, async (request, reply) => {
    const { agent_id: id, agent_secret: secret } = readBody(tokenRequest, request.body)
    const found = secret === undefined || secret === null ? undefined : await agents.signIn(id, secret)
    if (found === undefined) throw notSignedIn()
    const { record, token } = found
    return answer(reply, record, agentSessions.issue(record, shownScopes(record), token.id))
  })

  app.post('/agents/auth/refresh', PROVEN, async (request, reply) => {
    const session = agentSessions.read(readBody(refreshRequest, request.body).refresh_token, 'refresh')
    if (session === undefined || (await agentSessions.isRevoked(session))) throw notRenewed()
    const record = await agents.find(session.sub)
    const token = record?.tokens.find(({ id }) => id === session.cred)
    if (record === undefined || token === undefined || isExpired(token, wallTime(clock))) throw notRenewed()
    const scopes = shownScopes(record)
    if (scopes.toSorted().join(' ') !== session.scopes.toSorted().join(' ')) throw notRenewed()
    return answer(reply, record, agentSessions.issue(record, scopes, token.id, session.sid))
  })

  app.post('/agents/auth/revoke', PROVEN, async (request) => {
    const session = agentSessions.read(readBody(refreshRequest, request.body).refresh_token, 'refresh')
    if (session === undefined) throw notRenewed()
    await agentSessions.revoke(session)
    return operation('The refresh token and the access tokens that came with it are not valid any more.')
  })
}

function answer(reply: FastifyReply, record: AgentRecord, pair: SessionPair): object {
  void reply.header('cache-control', 'no-store')
  return {
    access_token: pair.access,
    refresh_token: pair.refresh,
    token_type: 'bearer',
    expires_in: pair.expiresInSeconds,
    scope: shownScopes(record).join(' '),
  }
}

function notRenewed(): ImpresarioError {
  const message = 'The refresh token is not valid, was revoked, or is of an agent that has changed. Sign in again.'
  return new ImpresarioError('UNAUTHENTICATED', message)
}
