import type { FastifyInstance, FastifyRequest } from 'fastify'
import { exactText, ImpresarioError } from '@impresario/protocol'
import { BATCH_BOUNDS, BODY_BOUNDS, checkJsonText, unreadable } from './json-guard.ts'
import type { JsonBounds } from './json-guard.ts'
import { settleNumbers } from '../worker-protocol/settle-numbers.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Bytes of one text in the body, where that is more than usual. */
    readonly textBytesMax?: number
  }
  interface FastifyRequest {
    /** The body as it came, where a signature may cover it. */
    bodyText: string | undefined
    /** Whether the body has numbers that are kept as texts. */
    hasExactNumbers: boolean
  }
}

/** Paths whose bodies hold many items. */
const BATCHES = /\/(?:batch|results|quarantine\/retry|quarantine\/discard)(?:\?|$)/

function boundsOf({ url, routeOptions }: FastifyRequest): JsonBounds {
  if (BATCHES.test(url)) return BATCH_BOUNDS
  const { textBytesMax } = routeOptions.config
  return textBytesMax === undefined ? BODY_BOUNDS : { ...BODY_BOUNDS, stringBytesMax: textBytesMax }
}

/**
 * Reads bodies of JSON: within their bounds, without names that would poison a prototype, and with every number as it was
 * written. Numbers that a double would alter are kept as texts (see `exactText`); where a schema asks for a number, it
 * gets one.
 */
export function readJsonBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.decorateRequest('bodyText', undefined)
  app.decorateRequest('hasExactNumbers', false)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    const text = String(body)
    if (text === '') {
      done(null, undefined)
      return
    }
    let exact: string
    try {
      checkJsonText(text, boundsOf(request))
      exact = exactText(text)
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
      return
    }
    request.hasExactNumbers = exact !== text
    if (request.routeOptions.config.signed !== undefined) request.bodyText = text
    void parse(request, exact, (error, value) => {
      if (error === null) done(null, value)
      else done(unreadable(text, 'Invalid JSON body'))
    })
  })
  app.addHook('preValidation', (request, _reply, done) => {
    if (!request.hasExactNumbers) {
      done()
      return
    }
    const problem = settleNumbers(request.routeOptions.schema?.body, request.body)
    if (problem === undefined) done()
    else done(new ImpresarioError('INVALID_REQUEST', problem))
  })
}
