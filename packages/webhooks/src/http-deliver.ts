import http from 'node:http'
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import { unlessAborted } from '@impresario/protocol'
import type { Deliver, Parcel, Sent } from './deliver.ts'
import { checkUrl, pinnedLookup, resolveTarget, systemResolve } from './outbound.ts'
import type { OutboundPolicy, Resolve, Target } from './outbound.ts'

export interface HttpDeliverOptions {
  readonly policy: OutboundPolicy
  /** For the whole exchange, from the look-up of the name to the end of the answer. */
  readonly timeoutMs?: number
  readonly resolve?: Resolve
  /** Certificates to trust instead of the well-known ones. */
  readonly ca?: string | readonly string[]
}

/** Receivers should take a message and work on it later; ten seconds are what clients of older versions count on. */
export const SEND_TIMEOUT_MS = 10_000

/** Nothing of the answer is needed; what is longer is cut. */
const ANSWER_BYTES_MAX = 65_536

const EXCERPT_CHARS_MAX = 200

/** Only what says that it is text is shown, and of this only what a terminal and a page show as they are. */
const TEXT_TYPE = /^(?:text\/plain|application\/(?:[\w.+-]+\+)?json)\b/i

/** Sends over the network, to addresses that the policy allows. Redirects are not followed: they would lead around the checks. */
export function createHttpDeliver(options: HttpDeliverOptions): Deliver {
  const { policy, timeoutMs = SEND_TIMEOUT_MS, resolve = systemResolve, ca } = options
  // Agents of our own: the global ones keep connections and may go through a proxy, which would resolve names itself.
  const agents = {
    'http:': new http.Agent({ keepAlive: false }),
    'https:': new https.Agent({
      keepAlive: false,
      minVersion: 'TLSv1.2',
      ...(ca === undefined ? {} : { ca: [ca].flat() }),
    }),
  }

  const exchange = async (parcel: Parcel, deadline: AbortSignal): Promise<Sent> => {
    const url = checkUrl(parcel.url, policy)
    if ('problem' in url) return failure(`The address ${url.problem}.`, true)
    const target = await unlessAborted(resolveTarget(url, policy, resolve), deadline, () => new Error('aborted'))
    if ('problem' in target) return failure(`The address ${target.problem}.`)
    return request(target, parcel, { agents, deadline })
  }

  return {
    send: async (parcel) => {
      const deadline = AbortSignal.timeout(timeoutMs)
      try {
        return await exchange(parcel, deadline)
      } catch (error) {
        return failure(deadline.aborted ? `There was no answer within ${timeoutMs / 1_000} s.` : describeError(error))
      }
    },
  }
}

function failure(error: string, isPermanent = false): Sent {
  return { type: 'failed', error, isPermanent }
}

interface Channel {
  readonly agents: { readonly 'http:': http.Agent; readonly 'https:': https.Agent }
  readonly deadline: AbortSignal
}

function request({ url, addresses, isPublic }: Target, parcel: Parcel, channel: Channel): Promise<Sent> {
  const host = url.hostname.replaceAll(/^\[|\]$/g, '')
  const isSecure = url.protocol === 'https:'
  const options: RequestOptions & https.RequestOptions = {
    method: 'POST',
    host,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    agent: channel.agents[isSecure ? 'https:' : 'http:'],
    lookup: pinnedLookup(addresses),
    // The certificate is held against the name, although the connection goes to an address. Addresses have no such name.
    ...(isSecure && isIP(host) === 0 ? { servername: host.replace(/\.$/, '') } : {}),
    headers: {
      ...parcel.headers,
      'content-length': Buffer.byteLength(parcel.body),
      'user-agent': 'Impresario-Webhooks/1',
      accept: '*/*',
      'accept-encoding': 'identity',
      connection: 'close',
    },
  }
  return new Promise((resolve, reject) => {
    const sending: ClientRequest = (isSecure ? https : http).request(options)
    const abort = (): void => {
      sending.destroy(new Error('aborted'))
    }
    channel.deadline.addEventListener('abort', abort, { once: true })
    sending.on('close', () => channel.deadline.removeEventListener('abort', abort))
    sending.on('error', reject)
    sending.on('response', (answer) => {
      // From here on the status is known, and whatever breaks off only ends the answer.
      sending.off('error', reject)
      sending.on('error', () => {})
      void readAnswer(answer, isPublic).then((sent) => {
        resolve(sent)
        sending.destroy()
      })
    })
    sending.end(parcel.body)
  })
}

/** The status decides, also when the rest of the answer is cut off, too long or too slow. */
async function readAnswer(answer: IncomingMessage, isPublic: boolean): Promise<Sent> {
  const status = answer.statusCode ?? 0
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of chunksOf(answer)) {
      size += chunk.length
      if (size > ANSWER_BYTES_MAX) break
      chunks.push(chunk)
    }
  } catch {
    // Cut off. What has come is enough.
  }
  // What a server inside a private network answers is not for clients to read.
  const mayShow = isPublic && TEXT_TYPE.test(answer.headers['content-type'] ?? '')
  return {
    type: 'answered',
    status,
    retryAfter: answer.headers['retry-after'],
    excerpt: mayShow ? excerptOf(Buffer.concat(chunks).toString('utf8')) : undefined,
  }
}

/** Without an encoding, a stream of Node gives buffers; its type says nothing. */
function chunksOf(answer: IncomingMessage): AsyncIterable<Buffer> {
  return answer as AsyncIterable<Buffer>
}

/** One line of visible characters: nothing that moves a cursor, turns the direction of a text or hides in it. */
export function excerptOf(text: string): string | undefined {
  const visible = text
    .slice(0, 4 * EXCERPT_CHARS_MAX)
    .replaceAll(/[\p{C}\p{Z}\uFFFD\s]+/gu, ' ')
    .trim()
  // Cut between two characters, not within one that takes two places.
  const short = visible.slice(0, EXCERPT_CHARS_MAX).replace(/[\uD800-\uDBFF]$/, '')
  return short === '' ? undefined : short
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The receiver refused the connection.',
  ECONNRESET: 'The receiver broke the connection off.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The network cannot be reached.',
  ETIMEDOUT: 'The connection timed out.',
  CERT_HAS_EXPIRED: 'The certificate has expired.',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'The certificate is self-signed.',
  SELF_SIGNED_CERT_IN_CHAIN: 'The certificate is not signed by a trusted authority.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The certificate cannot be verified.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate is for another name.',
}

/** In our words: messages of the system contain addresses, which must stay private. */
function describeError(error: unknown): string {
  const code = codeOf(error)
  return REASONS[code] ?? `The message could not be sent (${code}).`
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0])
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown error'
}
