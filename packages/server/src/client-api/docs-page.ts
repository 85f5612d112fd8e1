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
body { margin: 0; }
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

const STATIC = '/_public/docs/static'

/** Instead of the page that comes with the parts: theirs does not fit on a phone. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Impresario API</title>
<link rel="icon" type="image/png" href="${STATIC}/favicon-32x32.png" sizes="32x32">
<link rel="stylesheet" href="${STATIC}/swagger-ui.css">
<link rel="stylesheet" href="${STATIC}/theme/dress.css">
<script src="${STATIC}/theme/dress.js"></script>
</head>
<body>
<main id="swagger-ui"></main>
<noscript>This page needs JavaScript. The document itself is <a href="/_public/openapi.json">here</a>.</noscript>
<script src="${STATIC}/swagger-ui-bundle.js"></script>
<script src="${STATIC}/swagger-ui-standalone-preset.js"></script>
<script src="${STATIC}/swagger-initializer.js"></script>
</body>
</html>
`

/** A page on which people read and try the interface. Works without the internet and under a strict policy. */
export async function registerDocsPage(app: FastifyInstance, description: ApiDescription): Promise<void> {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, access: 'public' }
    route.schema = { ...route.schema, hide: true }
    if (/\/docs\/?$/.test(route.url)) {
      route.handler = async (_request, reply) => reply.type('text/html; charset=utf-8').send(PAGE)
    }
  })
  app.addHook('onSend', async (_request, reply) => {
    void reply
      .header('content-security-policy', POLICY)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer')
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    indexPrefix: '/_public',
    uiConfig: { deepLinking: true, docExpansion: 'none', tryItOutEnabled: true, persistAuthorization: false },
    theme: {
      js: [{ filename: 'dress.js', content: DRESS_SCRIPT }],
      css: [{ filename: 'dress.css', content: DRESS_STYLE }],
    },
    transformSpecification: () => description.document,
    transformSpecificationClone: false,
  })
}
