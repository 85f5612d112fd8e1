import swagger from '@fastify/swagger'
import { z } from 'zod'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import { ERROR_CODES, ERROR_MEANINGS, ImpresarioError, isJsonObject } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import type { ReloadableRegistry } from '../orchestrator/reloadable-registry.ts'
import { jsonSchema } from '../http/json-schema.ts'
import { withNames } from './named-schemas.ts'
import { CLIENT_SCHEME, route, TAGS, WORKER_SCHEME } from '../http/route.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'

/** OpenAPI 3.1, as far as it is looked at here. */
export interface ApiDocument extends JsonObject {
  readonly openapi: string
  readonly paths: Readonly<Record<string, JsonObject>>
}

const DESCRIPTION = `The whole HTTP interface: for clients, for workers, and for people who decide.

Every path under \`/api/v1\` also exists under \`/api\`. Times are Unix seconds, spans are seconds; \`null\` means absent.
Every refusal has the same shape, with a \`code\` for programs.

<details><summary>Every code, what it means and what to do</summary>

${ERROR_CODES.map(describeCode).join('\n')}

</details>
`

function describeCode(code: (typeof ERROR_CODES)[number]): string {
  const { meaning, fix } = ERROR_MEANINGS[code]
  return `- \`${code}\` (${new ImpresarioError(code, '').status}): ${plain(meaning)} ${plain(fix)}`
}

/** Links of the reference pages lead nowhere here. */
function plain(text: string): string {
  return text.replaceAll(/\[(?<text>[^\]]*)\]\([^)]*\)/g, '$<text>')
}

/** Listens to the routes that are declared after it, and makes the document of what they say. */
export function collectRoutes(app: FastifyInstance, version: string, publicUrl = ''): void {
  const problem = jsonSchema(schemas.problem, 'output')
  const properties = isJsonObject(problem['properties']) ? problem['properties'] : {}
  app.addSchema({
    $id: 'Problem',
    ...problem,
    properties: {
      ...properties,
      code: { type: 'string', enum: ERROR_CODES, description: 'For programs; never renamed.' },
    },
  })
  void app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Impresario', version, description: DESCRIPTION, license: { name: 'Apache-2.0' } },
      // An address by which the document itself was found is as good as any other.
      servers: [{ url: publicUrl === '' ? '/' : withoutEndSlashes(publicUrl), description: 'This server.' }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          [CLIENT_SCHEME]: { type: 'apiKey', in: 'header', name: 'X-Client-Token' },
          [WORKER_SCHEME]: { type: 'apiKey', in: 'header', name: 'X-Worker-Token' },
        },
      },
    },
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => nameOf(json['$id'], index) },
    transform: ({ schema, url, route: options }) => described(schema, url, options),
  })
}

function nameOf(id: unknown, index: number): string {
  return typeof id === 'string' ? id : `schema-${index}`
}

function described(given: FastifySchema | undefined, url: string, { config }: RouteOptions) {
  const schema = given ?? {}
  if (config?.isAlias === true) return { schema: { ...schema, hide: true }, url }
  const access = { 'x-access': config?.access, ...(config?.scope === undefined ? {} : { 'x-scope': config.scope }) }
  return { schema: { ...schema, ...config?.documented, ...access }, url: url.replace(/\*$/, ':endpoint') }
}

/** Marks what a scope declares as the same routes under another path. */
export function markAliases(scope: FastifyInstance): void {
  scope.addHook('onRoute', (options) => {
    options.config = { ...options.config, isAlias: true }
  })
}

/** The document as it is now: blueprints come and go, and each with an endpoint has an entry of its own. */
export class ApiDescription {
  readonly #app: FastifyInstance
  readonly #blueprints: ReloadableRegistry
  readonly #prefix: string
  #made: { readonly of: string; readonly document: ApiDocument; readonly text: string } | undefined

  constructor(app: FastifyInstance, blueprints: ReloadableRegistry, clientApiPrefix: string) {
    this.#app = app
    this.#blueprints = blueprints
    this.#prefix = clientApiPrefix
  }

  get document(): ApiDocument {
    return this.#current().document
  }

  get text(): string {
    return this.#current().text
  }

  #current(): { readonly document: ApiDocument; readonly text: string } {
    const endpoints = this.#endpoints()
    const of = JSON.stringify(endpoints)
    if (this.#made?.of === of) return this.#made
    const bare = asDocument(this.#app.swagger())
    const generic = bare.paths[`/${this.#prefix}/v1/{endpoint}`]?.['post']
    const own = endpoints.map(({ path, name }): [string, JsonObject] => [path, { post: startOf(generic, name) }])
    const document = withNames({ ...bare, paths: { ...bare.paths, ...Object.fromEntries(own) } })
    this.#made = { of, document, text: JSON.stringify(document) }
    return this.#made
  }

  #endpoints(): readonly { readonly path: string; readonly name: string }[] {
    const found = new Map<string, string>()
    for (const { name, endpoint, apiVersion } of this.#blueprints.list()) {
      if (endpoint === undefined) continue
      found.set(`/${this.#prefix}/${apiVersion ?? 'v1'}/${endpoint.replaceAll(/^\/+|\/+$/g, '')}`, name)
    }
    return [...found].map(([path, name]) => ({ path, name }))
  }
}

/** Boundary: what the collector makes is JSON, and has paths. */
function asDocument(made: object): ApiDocument {
  return made as unknown as ApiDocument
}

function startOf(generic: Json | undefined, name: string): JsonObject {
  const { parameters: _, ...operation } = isJsonObject(generic) ? generic : {}
  return { ...operation, operationId: `start_${name}`, summary: `Start “${name}”` }
}

const DOCUMENT = route({
  access: 'public',
  tag: 'server',
  id: 'getApiDocument',
  summary: 'This document, as OpenAPI 3.1',
  replies: { 200: { description: 'The document.', body: z.looseObject({ openapi: z.string() }) } },
})

export function registerDocumentRoute(app: FastifyInstance, description: ApiDescription): void {
  app.get('/openapi.json', DOCUMENT, async (_request, reply) =>
    reply
      .header('content-type', 'application/json; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(description.text),
  )
}
