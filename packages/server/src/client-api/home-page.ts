import type { FastifyInstance } from 'fastify'
import { appDirectory } from '@impresario/dashboard'
import * as schemas from '@impresario/protocol/schemas'
import { framed, PAGE_HEADERS } from './page-frame.ts'
import { route } from '../http/route.ts'
import { VERSION } from '../runtime/version.ts'

const LINKS = {
  dashboard: '/dashboard',
  documentation: '/_public/docs',
  openapi: '/_public/openapi.json',
  live: '/_public/live',
  ready: '/_public/ready',
} as const

const HOME = route({
  access: 'public',
  tag: 'server',
  id: 'getHome',
  summary: 'What this server is, and where to go on: the dashboard for browsers, JSON for programs',
  description: 'Browsers are sent to the dashboard; where it is not built, they get a page with links.',
  replies: {
    200: { description: 'Its name, version and links.', body: schemas.homeBody, types: ['text/html'] },
    302: {
      description: 'To the dashboard, for browsers.',
      headers: { Location: 'Relative, so that it holds behind every prefix.' },
    },
  },
})

const PAGE = framed(
  'Impresario',
  `<p class="message">This is an orchestrator. It runs jobs and hands their tasks to workers.</p>
<ul class="links">
<li><a href="${LINKS.documentation}">API documentation</a><span>Read and try every request.</span></li>
<li><a href="${LINKS.openapi}">OpenAPI document</a><span>The same for programs.</span></li>
<li><a href="${LINKS.ready}">Readiness</a><span>Whether requests should come here, and the state of each component.</span></li>
<li><a href="${LINKS.live}">Liveness</a><span>Whether the process answers.</span></li>
</ul>
<div class="facts">
<p>Version ${VERSION}. Jobs are started with a client token: <code>impresario jobs start</code>, the SDK or the API.</p>
</div>`,
)

/** Answers `/`: people who open the address in a browser come to the dashboard, programs get JSON. */
export function registerHome(app: FastifyInstance, hasDashboard = appDirectory() !== undefined): void {
  app.get('/', HOME, async (request, reply) => {
    void reply.header('vary', 'Accept')
    const isPerson = prefersHtml(request.headers.accept)
    if (isPerson && hasDashboard) return reply.redirect('dashboard')
    if (isPerson) return reply.headers(PAGE_HEADERS).send(PAGE)
    return { name: 'impresario', version: VERSION, links: LINKS }
  })
}

/** Browsers name HTML in their Accept header. Programs name JSON, anything (`*`) or nothing. */
function prefersHtml(accept: string | undefined): boolean {
  return (
    accept !== undefined && /\btext\/html\b/i.test(accept) && !/^\s*application\/(?:[\w.-]+\+)?json\b/i.test(accept)
  )
}
