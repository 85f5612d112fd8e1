import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { appDirectory } from '@impresario/dashboard'
import { ImpresarioError } from '@impresario/protocol'
import { preferredEncoding } from '../http/accept-encoding.ts'
import { addVary } from '../http/cors.ts'
import { readAppFiles } from './app-files.ts'
import type { AppFile } from './app-files.ts'

/** Everything comes from this server, nothing stands inside the page, and no other page may frame it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const PAGE_HEADERS = {
  'content-security-policy': POLICY,
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
}

const PUBLIC = { config: { access: 'public' }, schema: { hide: true } } as const

const NOT_BUILT = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Impresario</title></head>
<body><p>The dashboard is not built. Run <code>npm run build</code> and start the server again.</p></body></html>
`

export interface AppRoutesOptions {
  readonly clientApiPrefix: string
  /** Where the built application lies. */
  readonly directory?: string | undefined
  /** The old answer of this path, for callers that ask for JSON. */
  readonly counts: (request: FastifyRequest) => Promise<object>
}

/** The files of the dashboard. Every path that is no file is a page of the application, which finds its way itself. */
export function registerAppRoutes(app: FastifyInstance, options: AppRoutesOptions): void {
  const files = readAppFiles(options.directory ?? appDirectory())
  const shell = files.get('index.html')?.content.toString() ?? NOT_BUILT

  const showPage = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    addVary(reply, 'Accept')
    return reply
      .headers(PAGE_HEADERS)
      .type('text/html; charset=utf-8')
      .send(placed(shell, request.originalUrl, options.clientApiPrefix))
  }

  app.get('/dashboard', PUBLIC, async (request, reply) =>
    wantsJson(request) ? options.counts(request) : showPage(request, reply),
  )

  app.get<{ Params: { '*': string } }>('/dashboard/*', PUBLIC, async (request, reply) => {
    const file = files.get(request.params['*'])
    if (file !== undefined && request.params['*'] !== 'index.html') return sendFile(request, reply, file)
    if (request.params['*'].startsWith('assets/')) throw new ImpresarioError('NOT_FOUND', 'There is nothing here.')
    return showPage(request, reply)
  })
}

/** Programs name JSON; browsers name HTML; who names nothing gets the page. */
function wantsJson({ headers: { accept = '' } }: FastifyRequest): boolean {
  return /\bapplication\/json\b/i.test(accept) && !/\btext\/html\b/i.test(accept)
}

/**
 * Says where the application lies, as seen from the page: a proxy may have put a prefix in front that only the browser knows,
 * so everything is relative to the path that was asked for.
 */
function placed(shell: string, url: string, clientApiPrefix: string): string {
  const [path = ''] = url.split('?', 1)
  const inside = path.slice(path.indexOf('/dashboard') + '/dashboard'.length)
  const depth = inside.split('/').length - 1
  const base = depth === 0 ? 'dashboard/' : depth === 1 ? './' : '../'.repeat(depth - 1)
  return shell.replace('%BASE%', base).replace('%API%', `../${clientApiPrefix}/v1/`)
}

function sendFile({ headers }: FastifyRequest, reply: FastifyReply, file: AppFile): FastifyReply {
  void reply.headers({
    'content-security-policy': POLICY,
    'cache-control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: file.etag,
  })
  if (file.packed.size > 0) addVary(reply, 'Accept-Encoding')
  if (headers['if-none-match']?.includes(file.etag.slice('W/'.length)) === true) return reply.code(304).send()
  const form = preferredEncoding(headers['accept-encoding']?.toString(), [...file.packed.keys()])
  const packed = form === undefined ? undefined : file.packed.get(form)
  if (form === undefined || packed === undefined) return reply.type(file.type).send(file.content)
  return reply.type(file.type).header('content-encoding', form).send(packed)
}
