import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/**
 * `fetch` that trusts one more certificate authority: Node's own reads authorities only when the process starts.
 * Connections are persistent.
 */
export function fetchTrusting(ca: string): (input: string, init: RequestInit) => Promise<Response> {
  const agent = new Agent({ ca, keepAlive: true })
  return (input, init) =>
    new Promise((resolve, reject) => {
      const { method = 'GET', headers, body, signal } = init
      const options = {
        method,
        agent,
        headers: Object.fromEntries(new Headers(headers)),
        ...(signal ? { signal } : {}),
      }
      const sent = request(input, options, (answer) => {
        if (answer.headers['content-type']?.startsWith('text/event-stream') === true) {
          resolve(responseOf(answer, Readable.toWeb(answer) as ReadableStream<Uint8Array>))
        } else bodyOf(answer).then((whole) => resolve(responseOf(answer, new Uint8Array(whole))), reject)
      })
      sent.on('error', reject)
      sent.end(typeof body === 'string' ? body : undefined)
    })
}

async function bodyOf(answer: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = []
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function responseOf(
  { statusCode: status = 0, rawHeaders }: IncomingMessage,
  body: NonNullable<ConstructorParameters<typeof Response>[0]>,
): Response {
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  const hasBody = status !== 204 && status !== 304
  return new Response(hasBody ? body : null, { status, headers })
}
