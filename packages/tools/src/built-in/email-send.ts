import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { stringifyExact, utf8Bytes } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { checkUrl, pinnedLookup, resolveTarget, systemResolve } from '@impresario/webhooks'
import type { OutboundPolicy, Resolve } from '@impresario/webhooks'
import { ToolError } from '../tool.ts'
import type { BuiltInTool, ToolCall } from '../tool.ts'
import { recipientsIn, readAddress } from './email-address.ts'
import type { Mailbox } from './email-address.ts'

export interface EmailSendOptions {
  /** Where mail servers may be: the same rules as for webhooks. */
  readonly policy: OutboundPolicy
  readonly resolve?: Resolve
  /** Certificates to trust instead of those of the system. */
  readonly ca?: string
}

/** Text and HTML together. Larger things belong behind a link. */
const BODY_BYTES_MAX = 200_000
const SUBJECT_BYTES_MAX = 900
const RECIPIENTS_MAX = 50
/** Those of mail; others as for webhooks. */
const PORTS = { tls: 465, starttls: 587, none: 25 } as const
const MAIL_PORTS = [...Object.values(PORTS), 2525].map((port) => ({ from: port, to: port }))
const CONNECT_MS = 10_000
const SILENCE_MS = 30_000

/** The input, as its schema has checked it. */
interface Given {
  readonly server: {
    readonly host: string
    readonly port?: number
    readonly security?: keyof typeof PORTS
    readonly user?: string
    readonly password?: string
  }
  readonly from: string
  readonly to: string | readonly string[]
  readonly cc?: string | readonly string[]
  readonly bcc?: string | readonly string[]
  readonly reply_to?: string
  readonly subject: string
  readonly text?: string
  readonly html?: string
}

const addresses = {
  description: 'One address or a list: ada@example.com, or Ada <ada@example.com>.',
  anyOf: [{ type: 'string' }, { type: 'array', minItems: 1, maxItems: RECIPIENTS_MAX, items: { type: 'string' } }],
}

/**
 * Hands one message to a mail server. The `Message-ID` is the same whenever the same run sends the same message, so that a
 * message that is sent again after a failure is recognised as one.
 */
export function emailSend({ policy, resolve = systemResolve, ca }: EmailSendOptions): BuiltInTool {
  return {
    name: 'email.send',
    kind: 'built_in',
    description:
      'Sends an e-mail through an SMTP server. Give the password as a secret: "${secrets.SMTP_PASSWORD}". Gives the Message-ID, and who was accepted and rejected.',
    input: {
      type: 'object',
      additionalProperties: false,
      required: ['server', 'from', 'to', 'subject'],
      properties: {
        server: {
          type: 'object',
          additionalProperties: false,
          required: ['host'],
          properties: {
            host: { type: 'string', minLength: 1, maxLength: 253 },
            port: { type: 'integer', minimum: 1, maximum: 65_535 },
            security: {
              enum: Object.keys(PORTS),
              default: 'tls',
              description: 'tls: port 465. starttls: port 587. none: port 25, only where plain http is allowed.',
            },
            user: { type: 'string', maxLength: 500 },
            password: { type: 'string', maxLength: 5_000 },
          },
        },
        from: { type: 'string' },
        to: addresses,
        cc: addresses,
        bcc: addresses,
        reply_to: { type: 'string' },
        subject: { type: 'string', minLength: 1 },
        text: { type: 'string' },
        html: { type: 'string' },
      },
    },
    output: {
      type: 'object',
      required: ['message_id', 'accepted', 'rejected'],
      properties: { message_id: { type: 'string' }, accepted: { type: 'array' }, rejected: { type: 'array' } },
    },
    timeoutSeconds: 60,
    scopes: [],
    isIdempotent: false,
    isReadOnly: false,
    run: async (input, call) => {
      const given = givenIn(input)
      const message = messageIn(given, call.runId)
      const connection = await socketTo(given.server, policy, resolve, call)
      return deliver({ server: given.server, message, connection, ca }, call)
    },
  }
}

/** Boundary: the schema of the tool was checked before. */
function givenIn(input: DataObject): Given {
  return input as unknown as Given
}

interface Message {
  readonly messageId: string
  readonly from: Mailbox
  readonly to: readonly Mailbox[]
  readonly cc: readonly Mailbox[]
  readonly bcc: readonly Mailbox[]
  readonly replyTo: Mailbox | undefined
  readonly subject: string
  readonly text: string | undefined
  readonly html: string | undefined
}

function messageIn(given: Given, runId: string): Message {
  const { subject, text, html } = given
  if (/[\r\n\0]/.test(subject)) throw refusal('The subject has a line break. It must be one line.')
  if (utf8Bytes(subject) > SUBJECT_BYTES_MAX) throw refusal(`The subject may have ${SUBJECT_BYTES_MAX} bytes.`)
  if (text === undefined && html === undefined) throw refusal('Give "text" or "html", or both.')
  if (utf8Bytes(text ?? '') + utf8Bytes(html ?? '') > BODY_BYTES_MAX) {
    throw refusal(`Text and HTML may have ${BODY_BYTES_MAX} bytes together. Send a link to larger things.`)
  }
  const from = readAddress('from', given.from)
  const to = recipientsIn('to', given.to)
  const cc = recipientsIn('cc', given.cc)
  const bcc = recipientsIn('bcc', given.bcc)
  if (to.length + cc.length + bcc.length > RECIPIENTS_MAX) {
    throw refusal(`A message may have ${RECIPIENTS_MAX} recipients together.`)
  }
  const replyTo = given.reply_to === undefined ? undefined : readAddress('reply_to', given.reply_to)
  const { server: _, ...content } = given
  const digest = createHash('sha256')
    .update(`${runId}\n${stringifyExact(content)}`)
    .digest('hex')
  const messageId = `<${digest.slice(0, 40)}@${from.address.slice(from.address.indexOf('@') + 1)}>`
  return { messageId, from, to, cc, bcc, replyTo, subject, text, html }
}

/** A connection to an address that was checked. It ends with the call. */
async function socketTo(
  { host, port, security = 'tls' }: Given['server'],
  policy: OutboundPolicy,
  lookUp: Resolve,
  { signal }: ToolCall,
): Promise<Socket> {
  if (security === 'none' && !policy.allowHttp) {
    throw refusal('The mail server must be reached with "tls" or "starttls"; without encryption is not allowed here.')
  }
  const chosen = port ?? PORTS[security]
  const name = host.includes(':') ? `[${host}]` : host
  const url = checkUrl(`https://${name}:${chosen}/`, {
    ...policy,
    allowedPorts: [...policy.allowedPorts, ...MAIL_PORTS],
  })
  if ('problem' in url) throw refusal(`The mail server ${url.problem}.`)
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') throw refusal('"host" must be the name of a host.')
  const target = await resolveTarget(url, policy, lookUp)
  if ('problem' in target) throw new ToolError('PERMANENT_ERROR', `The mail server ${target.problem}.`)
  const socket = connect({ host, port: chosen, lookup: pinnedLookup(target.addresses), signal })
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error('timeout')), CONNECT_MS)
    socket.once('connect', () => {
      clearTimeout(timer)
      resolve(socket)
    })
    socket.once('error', (error) => {
      clearTimeout(timer)
      reject(new ToolError('TRANSIENT_ERROR', problemOf(error)))
    })
  })
}

interface Delivery {
  readonly server: Given['server']
  readonly message: Message
  readonly connection: Socket
  readonly ca: string | undefined
}

async function deliver({ server, message, connection, ca }: Delivery, { signal }: ToolCall): Promise<Data> {
  const { host, security = 'tls', user, password } = server
  const { messageId, from, to, cc, bcc, replyTo, ...content } = message
  const stop = (): void => {
    connection.destroy()
  }
  signal.addEventListener('abort', stop, { once: true })
  // Read with the first message: most servers send none.
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    host,
    connection,
    secure: security === 'tls',
    ...(security === 'starttls' ? { requireTLS: true } : {}),
    ...(security === 'none' ? { ignoreTLS: true } : {}),
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    ...(ca === undefined ? {} : { tls: { ca } }),
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    // Nothing of a message may name a file or an address to fetch.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  try {
    const sent = await transport.sendMail({
      ...content,
      messageId,
      from,
      to: [...to],
      cc: [...cc],
      bcc: [...bcc],
      ...(replyTo === undefined ? {} : { replyTo }),
    })
    return { message_id: messageId, accepted: names(sent.accepted), rejected: names(sent.rejected) }
  } catch (error) {
    throw failureOf(error)
  } finally {
    signal.removeEventListener('abort', stop)
    transport.close()
    connection.destroy()
  }
}

function names(list: readonly (string | { readonly address: string })[]): Data {
  return list.map((one) => (typeof one === 'string' ? one : one.address))
}

/** A server that says no for now (4xx), or that cannot be reached, is asked again. One that says no (5xx) is not. */
function failureOf(error: unknown): ToolError {
  const { responseCode, response } = error as { readonly responseCode?: unknown; readonly response?: unknown }
  if (typeof responseCode === 'number' && responseCode > 0) {
    const said = typeof response === 'string' ? response.slice(0, 300) : String(responseCode)
    const code = responseCode >= 500 ? 'PERMANENT_ERROR' : 'TRANSIENT_ERROR'
    return new ToolError(code, `The mail server refused: ${said}`)
  }
  return new ToolError('TRANSIENT_ERROR', problemOf(error))
}

/** Messages of the system name addresses, which belong to this network. */
function problemOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no answer'
  return `The mail could not be sent (${code}).`
}

function refusal(message: string): ToolError {
  return new ToolError('INVALID_INPUT_ERROR', message)
}
