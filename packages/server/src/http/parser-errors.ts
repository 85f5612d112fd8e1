import { ServerResponse, STATUS_CODES } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import { problemBody } from './problem.ts'
import { SECURE_HEADERS } from './secure-headers.ts'

/** What the parser refuses, in the words of our catalogue. */
const PARSER_CODES: Readonly<Record<string, ImpresarioError>> = {
  ERR_HTTP_REQUEST_TIMEOUT: new ImpresarioError('REQUEST_TIMEOUT', 'The request did not arrive in time.'),
  HPE_HEADER_OVERFLOW: new ImpresarioError('HEADERS_TOO_LARGE', 'The headers are too large.'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: new ImpresarioError('BODY_TOO_LARGE', 'The extensions of a chunk are too large.'),
}
const MALFORMED = new ImpresarioError('INVALID_REQUEST', 'This is not a valid HTTP request.')

/**
 * Answers what never became a request: a malformed request line, headers that are too long, a head or a body that comes too
 * slowly. Nothing is logged, because any client can cause it as often as it likes.
 */
export function answerParserError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  // What was answered in part cannot be answered again: the other side would read one answer inside the other.
  if (socket.writable && !hasBegunAnswer(socket)) socket.write(refusalText(PARSER_CODES[error.code ?? ''] ?? MALFORMED))
  socket.destroy(error)
}

/** Node keeps the answer that is under way at its socket, under a name that its types do not have. */
function hasBegunAnswer(socket: Socket): boolean {
  const answer: unknown = Reflect.get(socket, '_httpMessage')
  return answer instanceof ServerResponse && answer.headersSent
}

/** A whole answer, for a connection that no request has come over. */
export function refusalText(refusal: ImpresarioError): string {
  const body = JSON.stringify(problemBody(refusal))
  const lines = Object.entries(headersFor(body)).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}`, ...lines, '', body].join('\r\n')
}

function headersFor(body: string): Readonly<Record<string, string | number>> {
  return {
    ...SECURE_HEADERS,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
}

/** Node answers an `Expect` that it does not know with an empty 417. */
export function refuseExpectations(server: Server): void {
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const message = 'The header Expect can only be 100-continue.'
    const body = JSON.stringify(problemBody(new ImpresarioError('INVALID_REQUEST', message)))
    response.writeHead(400, headersFor(body))
    response.end(body)
  })
}

/** HTTP/1.1 wants a host (RFC 9112, 3.2). */
export function refuseWithoutHost(app: FastifyInstance): void {
  // Asynchronous on purpose: what the parser finds wrong with the rest of a request is then answered before an unknown path is.
  app.addHook('onRequest', async ({ raw }, reply) => {
    if (raw.headers.host !== undefined || raw.httpVersion !== '1.1') return
    void reply.headers(SECURE_HEADERS)
    throw new ImpresarioError('INVALID_REQUEST', 'The header Host is missing.')
  })
}
