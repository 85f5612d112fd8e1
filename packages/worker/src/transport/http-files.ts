import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { pipeline } from 'node:stream'
import { WORKER_PATHS, type FileRef } from '@impresario/protocol'
import { messageOf } from '../runtime/log.ts'
import { readText, refusalOf, replyOf, type HttpLine } from './http-line.ts'
import { TransportError, type FileTransport } from './transport.ts'

/** Nothing came or went for so long: the other side is gone. */
const STALL_MS = 60_000

interface FileCall {
  readonly method: 'GET' | 'PUT'
  readonly path: string
  readonly body?: { readonly content: AsyncIterable<Uint8Array>; readonly bytes: number }
  readonly signal: AbortSignal
}

/** Files over the orchestrator's own port, piece by piece, however large they are. */
export class HttpFiles implements FileTransport {
  readonly #line: HttpLine
  readonly #token: () => Promise<string | undefined>

  constructor(line: HttpLine, token: () => Promise<string | undefined>) {
    this.#line = line
    this.#token = token
  }

  async read(taskId: string, name: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return this.#send({ method: 'GET', path: WORKER_PATHS.taskFile(taskId, name), signal })
  }

  async write(
    taskId: string,
    name: string,
    body: { readonly content: AsyncIterable<Uint8Array>; readonly bytes: number },
    signal: AbortSignal,
  ): Promise<FileRef> {
    const path = WORKER_PATHS.taskFile(taskId, name)
    return this.#reply<FileRef>({ method: 'PUT', path, body, signal })
  }

  async list(taskId: string, prefix: string, signal: AbortSignal): Promise<readonly FileRef[]> {
    const path = WORKER_PATHS.taskFiles(taskId, prefix)
    const { files } = await this.#reply<{ readonly files: readonly FileRef[] }>({ method: 'GET', path, signal })
    return files
  }

  async #reply<T>(call: FileCall): Promise<T> {
    const response = await this.#send(call)
    return replyOf<T>({ status: response.statusCode ?? 0, text: await readText(response), retryAfter: undefined })
  }

  /** Resolves with the beginning of a good answer; its body is to be read. */
  async #send(call: FileCall): Promise<IncomingMessage> {
    const token = await this.#token()
    const response = await this.#respond(call, token)
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    const text = await readText(response)
    throw refusalOf(call, { status, text, retryAfter: response.headers['retry-after'] })
  }

  #respond({ method, path, body, signal }: FileCall, token: string | undefined): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const address = this.#line.address(path)
      const send = address.protocol === 'https:' ? httpsRequest : httpRequest
      const length = body === undefined ? {} : { 'content-length': String(body.bytes) }
      const type = body === undefined ? {} : { 'content-type': 'application/octet-stream' }
      const request: ClientRequest = send(address, {
        method,
        agent: this.#line.agent,
        headers: { ...this.#line.headers(token), ...length, ...type },
        signal,
      })
      request.setTimeout(STALL_MS, () => request.destroy(new Error('nothing came for a while')))
      const fail = (error: unknown): void => {
        const message = `${method} ${this.#line.name}${path}: ${messageOf(error)}`
        reject(new TransportError('unavailable', message, { cause: error }))
      }
      request.on('error', fail)
      request.on('response', resolve)
      if (body === undefined) request.end()
      else {
        pipeline(body.content, request, (error) => {
          if (error !== null && error !== undefined) fail(error)
        })
      }
    })
  }
}
