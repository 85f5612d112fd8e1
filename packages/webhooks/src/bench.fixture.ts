import http from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { createHash } from 'node:crypto'
import { setImmediate as immediate } from 'node:timers/promises'
import type { Clock, Log, LogFields, Random, Storage } from '@impresario/core'
import type { Json } from '@impresario/protocol'
import { testStorage } from '../../../test/servers/test-storage.ts'
import type { Deliver, Parcel, Sent } from './deliver.ts'
import { asDelivery, outboxItem } from './delivery.ts'
import type { Delivery } from './delivery.ts'
import { asEndpoint, endpointAddress, endpointId } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import type { OutgoingMessage } from './message.ts'
import type { OutboundPolicy } from './outbound.ts'
import { WebhookSender } from './sender.ts'
import type { WebhookSenderOptions } from './sender.ts'

/** A certificate for `receiver.test` that nobody but these tests trusts, and its key. */
export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBojCCAUegAwIBAgIUfiwHBQ6qnUXDaCMgUAdHNY5imZ0wCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNcmVjZWl2ZXIudGVzdDAgFw0yNjExMTYwMTQyMjJaGA8yMTI2
MTAyMzAxNDIyMlowGDEWMBQGA1UEAwwNcmVjZWl2ZXIudGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABAN4pdwyhItnUqTlx7v7k8JtVcn9IOWW+gy5rE1qqpsZ
a72gs/A9qEm1k/fvUuGDG9UGlsWedbaefFtXX1dzwqOjbTBrMB0GA1UdDgQWBBRf
1jPbu4SwnCsEyUQFNQur/yglyDAfBgNVHSMEGDAWgBRf1jPbu4SwnCsEyUQFNQur
/yglyDAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDXJlY2VpdmVyLnRlc3Qw
CgYIKoZIzj0EAwIDSQAwRgIhAMlapcqRmLrlx2h4tpTKV3aq8jMy4PFicwpFYjfx
jEKFAiEA6lj0B/UAyJBGF9cwFdpgk+hvdhOOpqdSWojRxspbVFo=
-----END CERTIFICATE-----
`
const CERTIFICATE_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgD0VdAuGt//76Vvrh
v/jpLWXeEeLFLGWJ4Ii2mSrwts6hRANCAAQDeKXcMoSLZ1Kk5ce7+5PCbVXJ/SDl
lvoMuaxNaqqbGWu9oLPwPahJtZP371LhgxvVBpbFnnW2nnxbV19Xc8Kj
-----END PRIVATE KEY-----
`

/** For receivers on this machine. */
export const LOCAL_POLICY: OutboundPolicy = {
  allowHttp: true,
  allowPrivate: true,
  allowedPorts: [{ from: 1, to: 65_535 }],
}

/** The derivation of the tests: from a purpose alone. */
export function deriveSecret(purpose: string): Buffer {
  return createHash('sha256').update(`tests ${purpose}`).digest()
}

/** Time that stands still until it is moved on. Sleeps last until they are ended. */
class StillClock implements Clock {
  time = Date.parse('2026-03-01T12:00:00Z')
  readonly now = (): number => this.time

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    if (ms <= 0) return immediate()
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }
}

class FixedRandom implements Random {
  chance = 0.5
  #count = 0
  next(): number {
    return this.chance
  }
  id(): string {
    this.#count += 1
    return `id-${this.#count}`
  }
}

class ListLog implements Log {
  readonly lines: string[] = []
  debug(message: string, fields?: LogFields): void {
    this.lines.push(`debug ${message} ${JSON.stringify(fields)}`)
  }
  info(message: string, fields?: LogFields): void {
    this.lines.push(`info ${message} ${JSON.stringify(fields)}`)
  }
  warn(message: string, fields?: LogFields): void {
    this.lines.push(`warn ${message} ${JSON.stringify(fields)}`)
  }
  error(message: string, fields?: LogFields): void {
    this.lines.push(`error ${message} ${JSON.stringify(fields)}`)
  }
}

export function answered(status: number, more: Partial<Extract<Sent, { type: 'answered' }>> = {}): Sent {
  return { type: 'answered', status, retryAfter: undefined, excerpt: undefined, ...more }
}

/** A way out that ends here: it keeps what is sent, and answers as it is told. */
class ScriptedDeliver implements Deliver {
  readonly parcels: Parcel[] = []
  answer: (parcel: Parcel) => Sent | Promise<Sent> = () => answered(204)
  inFlight = 0
  inFlightMost = 0

  async send(parcel: Parcel): Promise<Sent> {
    this.parcels.push(parcel)
    this.inFlight += 1
    this.inFlightMost = Math.max(this.inFlightMost, this.inFlight)
    try {
      return await this.answer(parcel)
    } finally {
      this.inFlight -= 1
    }
  }
}

export const HOOK = 'https://hooks.example/take'

/** A sender with everything that it needs, and a clock that the test moves. */
export class Bench {
  readonly clock = new StillClock()
  readonly random = new FixedRandom()
  readonly log = new ListLog()
  readonly deliver = new ScriptedDeliver()
  readonly storage: Storage
  readonly sender: WebhookSender
  readonly #more: Partial<WebhookSenderOptions>

  constructor(more: Partial<WebhookSenderOptions> = {}) {
    this.#more = more
    this.storage = more.storage ?? testStorage({ now: this.clock.now })
    this.sender = this.another()
  }

  /** One more sender on the same storage. */
  another(more: Partial<WebhookSenderOptions> = {}): WebhookSender {
    const { storage, clock, random, log, deliver } = this
    return new WebhookSender({ storage, clock, random, log, deliver, deriveSecret, ...this.#more, ...more })
  }

  message(id: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage {
    const body = { event: 'job_finished', job_id: `job-${id}`, status: 'finished', result: null, error: null }
    return {
      messageId: id,
      url: HOOK,
      clientId: 'acme',
      jobId: `job-${id}`,
      event: 'job_finished',
      at: this.clock.now(),
      body,
      ...more,
    }
  }

  async post(...messages: readonly OutgoingMessage[]): Promise<void> {
    await this.storage.commit({ enqueue: messages.map((message) => outboxItem(message, 0)) })
  }

  async enqueue(id: string, payload: Json): Promise<void> {
    await this.storage.commit({
      enqueue: [{ queue: 'outbox', id, lane: 'acme', priority: 0, delayMs: 0, payload }],
    })
  }

  /** Moves the clock and lets the sender do what is due until nothing is. */
  async pass(ms = 0): Promise<void> {
    this.clock.time += ms
    while ((await this.sender.tick()).worked > 0);
  }

  async delivery(id: string): Promise<Delivery> {
    const stored = await this.storage.read('delivery', id)
    if (stored === undefined) throw new Error(`There is no delivery ${id}.`)
    return asDelivery(stored).value
  }

  async endpoint(url = HOOK, clientId = 'acme'): Promise<Endpoint> {
    const stored = await this.storage.read('endpoint', endpointId(clientId, endpointAddress(url)))
    if (stored === undefined) throw new Error(`There is no endpoint for ${url}.`)
    return asEndpoint(stored).value
  }

  async dueInMs(id: string): Promise<number | undefined> {
    const [item] = await this.storage.peek('outbox', [id])
    return item?.dueInMs
  }
}

export interface Taken {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Receiver {
  readonly port: number
  readonly taken: readonly Taken[]
  /** Connections that were made, with or without a request. */
  readonly connections: () => number
  close(): Promise<void>
}

/** A real receiver on a port of its own. */
export async function startReceiver(
  answer: (taken: Taken, reply: ServerResponse) => void = (_taken, reply) => reply.writeHead(204).end(),
  options: { readonly secure?: boolean } = {},
): Promise<Receiver> {
  const taken: Taken[] = []
  let connections = 0
  const listener: RequestListener = (request, reply) => {
    void readAll(request).then((body) => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
      const one = { url: request.url ?? '', headers, body }
      taken.push(one)
      answer(one, reply)
    })
  }
  const server =
    options.secure === true
      ? https.createServer({ cert: CERTIFICATE, key: CERTIFICATE_KEY }, listener)
      : http.createServer(listener)
  server.on('connection', () => {
    connections += 1
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    taken,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
