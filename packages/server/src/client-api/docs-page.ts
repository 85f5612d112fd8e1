import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { addVary } from '../http/cors.ts'
import type { ApiDescription } from './api-document.ts'
import { DRESS_SCRIPT, DRESS_STYLE } from './docs-dress.ts'
import { MARK } from './page-frame.ts'
import { pageLanguage } from './page-language.ts'
import type { PageLanguage } from './page-language.ts'

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

interface DocsTexts {
  readonly title: string
  readonly lead: string
  readonly dashboard: string
  readonly document: string
  readonly noScript: string
}

const TEXTS: Readonly<Record<PageLanguage, DocsTexts>> = {
  en: {
    title: 'Impresario API',
    lead: 'Every request of the API, to read and to try. Enter a token first; it stays on this page only.',
    dashboard: 'Dashboard',
    document: 'OpenAPI document',
    noScript: 'This page needs JavaScript. The OpenAPI document has the same content.',
  },
  ru: {
    title: 'API Impresario',
    lead: 'Все запросы API: прочитать и попробовать. Сначала введите токен; он остаётся только на этой странице. Описания запросов — на английском.',
    dashboard: 'Панель',
    document: 'Документ OpenAPI',
    noScript: 'Для этой страницы нужен JavaScript. То же содержание — в документе OpenAPI.',
  },
  es: {
    title: 'API de Impresario',
    lead: 'Todas las peticiones de la API, para leer y probar. Introduzca antes un token; solo se guarda en esta página. Las descripciones están en inglés.',
    dashboard: 'Panel',
    document: 'Documento OpenAPI',
    noScript: 'Esta página necesita JavaScript. El documento OpenAPI tiene el mismo contenido.',
  },
}

/**
 * Instead of the page that comes with the parts: theirs does not fit on a phone and has one language. Addresses are relative,
 * because a proxy may have put a prefix in front.
 */
function pageFor(language: PageLanguage, path: string): string {
  const [up, here] = path.endsWith('/') ? ['../', './'] : ['./', 'docs/']
  const { title, lead, dashboard, document, noScript } = TEXTS[language]
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" type="image/png" href="${here}static/favicon-32x32.png" sizes="32x32">
<link rel="stylesheet" href="${here}static/swagger-ui.css">
<link rel="stylesheet" href="${here}static/theme/dress.css">
<script src="${here}static/theme/dress.js"></script>
</head>
<body>
<header class="top">
<a class="brand" href="${up}../dashboard">${MARK}<span>${title}</span></a>
<a href="${up}../dashboard">${dashboard}</a>
<a href="${up}openapi.json">${document}</a>
</header>
<p class="lead">${lead}</p>
<noscript><p class="lead">${noScript}</p></noscript>
<div id="swagger-ui"></div>
<script src="${here}static/swagger-ui-bundle.js"></script>
<script src="${here}static/swagger-ui-standalone-preset.js"></script>
<script src="${here}static/swagger-initializer.js"></script>
</body>
</html>
`
}

/** A page on which people read and try the interface. Works without the internet and under a strict policy. */
export async function registerDocsPage(app: FastifyInstance, description: ApiDescription): Promise<void> {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, access: 'public' }
    route.schema = { ...route.schema, hide: true }
    if (/\/docs\/?$/.test(route.url)) {
      route.handler = async ({ headers, originalUrl }, reply) => {
        const language = pageLanguage(headers['accept-language'])
        addVary(reply, 'Accept-Language')
        return reply
          .header('content-language', language)
          .type('text/html; charset=utf-8')
          .send(pageFor(language, originalUrl.split('?', 1)[0] ?? ''))
      }
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
