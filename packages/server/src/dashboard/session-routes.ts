import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ImpresarioError, isJsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { callerOf } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import { route } from '../http/route.ts'
import type { OpenSession, Sessions } from './sessions.ts'

export interface SessionRoutesOptions {
  readonly sessions: Sessions
  readonly publicUrl: string
}

const HIDDEN = { config: { access: 'public' }, schema: { hide: true } } as const
/** A token or a code, and room to spare. */
const BODY_BYTES_MAX = 8_192

const codeBody = z.object({
  path: z.string().describe('Opens the dashboard and signs in, once. Relative to where the server is reached.'),
  expires_at: z.number().describe('Unix seconds.'),
})

const CODE = route({
  access: 'viewer',
  scope: 'admin',
  tag: 'server',
  id: 'createDashboardLink',
  summary: 'A link that opens the dashboard and signs in, once',
  description: 'It signs in as the caller, within an hour. Whoever has the link can use it, so do not share it.',
  replies: { 200: { description: 'The link.', body: codeBody } },
})

/** Lets programs with a token open the dashboard in a browser: `impresario open`. */
export function registerLinkRoute(app: FastifyInstance, { sessions }: SessionRoutesOptions): void {
  app.post('/dashboard/links', CODE, async (request) => dashboardLink(sessions, callerOf(request).client.id))
}

export function dashboardLink(sessions: Sessions, clientId: string, page = ''): z.output<typeof codeBody> {
  const { code, expiresAt } = sessions.issueCode(clientId)
  // Behind a `#`: browsers send that part to no server, so that it stands in no log.
  return { path: `/dashboard/${page}#code=${code}`, expires_at: expiresAt / 1_000 }
}

/** Signing in and out in a browser. */
export function registerSessionRoutes(app: FastifyInstance, options: SessionRoutesOptions): void {
  const { sessions } = options
  app.get('/dashboard/session', HIDDEN, async (request) => {
    const session = sessions.sessionOf(request.headers)
    if (session !== undefined) await sessions.mustNotBeEnded(request.headers)
    return sessionBody(session?.caller ?? sessions.authenticate(request.headers), session)
  })

  app.post('/dashboard/session', { ...HIDDEN, bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
    const { text, session } = await begun(sessions, request.body)
    void reply.header('set-cookie', cookie(sessions.cookieName, text, session.expiresAt, isSecure(options, request)))
    return sessionBody(session.caller, session)
  })

  app.delete('/dashboard/session', HIDDEN, async (request, reply: FastifyReply) => {
    const session = sessions.sessionOf(request.headers)
    if (session !== undefined) await sessions.end(session)
    void reply.header('set-cookie', cookie(sessions.cookieName, '', 0, isSecure(options, request)))
    return { status: 'signed_out' }
  })
}

async function begun(sessions: Sessions, body: unknown): ReturnType<Sessions['redeem']> {
  const { token, code } = isJsonObject(body) ? body : {}
  if (typeof code === 'string') return sessions.redeem(code)
  if (typeof token === 'string' && token !== '') return sessions.begin(token)
  throw new ImpresarioError('INVALID_REQUEST', 'Send {"token": "…"} with a client token, or {"code": "…"} from a link.')
}

function sessionBody({ client, role }: Caller, session: OpenSession | undefined): object {
  return {
    client_id: client.id,
    role,
    expires_at: session === undefined ? null : session.expiresAt / 1_000,
  }
}

function isSecure({ publicUrl }: SessionRoutesOptions, { protocol }: FastifyRequest): boolean {
  return protocol === 'https' || publicUrl.startsWith('https:')
}

function cookie(name: string, value: string, expiresAt: number, isHttps: boolean): string {
  const expires = new Date(expiresAt).toUTCString()
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Expires=${expires}${isHttps ? '; Secure' : ''}`
}
