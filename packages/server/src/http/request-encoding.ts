import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest, RequestPayload } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import { ENCODINGS } from './accept-encoding.ts'
import type { Encoding } from './accept-encoding.ts'
import { decompress, TooLarge } from './codec.ts'

const NAMES = ENCODINGS.join(', ')

/**
 * Takes bodies that were compressed by the caller. The limit of a body counts for both of its sizes, and unpacking stops
 * there: a kilobyte that would become a gigabyte costs no more than the largest honest body.
 */
export function unpackBodies(app: FastifyInstance): void {
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const name = request.headers['content-encoding']
    // A file is kept as it comes; its route says so to whoever has packed it.
    if (name === undefined || request.routeOptions.config.isFile === true) {
      done(null, payload)
      return
    }
    unpacked(request, payload, name.trim().toLowerCase()).then(
      (body) => done(null, body),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
    )
  })
}

async function unpacked(request: FastifyRequest, payload: RequestPayload, name: string): Promise<RequestPayload> {
  if (name === '' || name === 'identity' || !hasBody(request)) return payload
  const encoding = ENCODINGS.find((known) => known === (name === 'x-gzip' ? 'gzip' : name))
  if (encoding === undefined) {
    throw new ImpresarioError('UNSUPPORTED_MEDIA', `Content-Encoding must be one of ${NAMES}, or left out.`)
  }
  const bytesMax = request.routeOptions.bodyLimit ?? 0
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge()
  const packed = await readAll(payload, bytesMax)
  const bytes = await unpack(encoding, packed, bytesMax)
  request.bodyPass?.add(bytes.length)
  const body: RequestPayload = Readable.from([bytes])
  body.receivedEncodedLength = packed.length
  return body
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Not with `for await`: leaving that early would cut the connection on which the refusal has to go out. */
function readAll(payload: Readable, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes <= bytesMax) {
        chunks.push(chunk)
        return
      }
      payload.off('data', onData)
      reject(tooLarge())
    }
    payload.on('data', onData)
    payload.once('end', () => resolve(Buffer.concat(chunks)))
    payload.once('error', reject)
    payload.once('close', () => reject(new ImpresarioError('INVALID_REQUEST', 'The body ended too early.')))
  })
}

async function unpack(encoding: Encoding, packed: Buffer, bytesMax: number): Promise<Buffer> {
  try {
    return await decompress(encoding, packed, bytesMax)
  } catch (error) {
    if (error instanceof TooLarge) throw tooLarge()
    throw new ImpresarioError('INVALID_REQUEST', `The body is not what Content-Encoding: ${encoding} says.`, {
      cause: error,
    })
  }
}

function tooLarge(): ImpresarioError {
  return new ImpresarioError('BODY_TOO_LARGE', 'The body is too large.')
}
