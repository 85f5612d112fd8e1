import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import type { ApiDescription } from './api-document.ts'

/** Everything comes from this server: no scripts, styles or fonts from elsewhere, and nothing inside the page itself. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The page has a dark dress, which it puts on when told. */
const DRESS_SCRIPT = `'use strict'
const dark = matchMedia('(prefers-color-scheme: dark)')
const dress = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', dress)
dress()
`

const DRESS_STYLE = `
html { color-scheme: light dark; }
html.dark-mode, html.dark-mode body { background: #1c2022; }
.swagger-ui .topbar { display: none; }
.swagger-ui .info { margin: 2rem 0; }
.swagger-ui .opblock .opblock-summary-path { word-break: break-word; }
@media (max-width: 40rem) {
  .swagger-ui .wrapper, .swagger-ui .scheme-container { padding: 0 .75rem; }
  .swagger-ui .info .title { font-size: 1.6rem; }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap; }
  .swagger-ui .opblock .opblock-summary-description { flex-basis: 100%; padding: 0 .5rem .25rem; }
}
`

/** A page on which people read and try the interface. Works without the internet and under a strict policy. */
export async function registerDocsPage(app: FastifyInstance, description: ApiDescription): Promise<void> {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, access: 'public' }
    route.schema = { ...route.schema, hide: true }
  })
  app.addHook('onSend', async (_request, reply, payload) => {
    void reply
      .header('content-security-policy', POLICY)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer')
    return typeof payload === 'string' ? payload.replace('<meta charset="UTF-8">', PHONE_META) : payload
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    indexPrefix: '/_public',
    uiConfig: { deepLinking: true, docExpansion: 'none', tryItOutEnabled: true, persistAuthorization: false },
    theme: {
      title: 'Impresario API',
      js: [{ filename: 'dress.js', content: DRESS_SCRIPT }],
      css: [{ filename: 'dress.css', content: DRESS_STYLE }],
    },
    transformSpecification: () => description.document,
    transformSpecificationClone: false,
  })
}

const PHONE_META = '<meta charset="UTF-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
