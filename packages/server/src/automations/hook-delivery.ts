import { compileExpression, HOOK_SCOPE } from '@impresario/automations'
import type { EventLog, HookRecord, Hooks } from '@impresario/automations'
import { sha256, wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import { ImpresarioError, isImpresarioError, parseExact } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { isGenuine } from './hook-signature.ts'

export interface HookDeliveryOptions {
  readonly hooks: Hooks
  readonly events: EventLog
  readonly clock: Clock
  /** Refuses a text of JSON that is out of bounds. */
  readonly checkJson: (text: string) => void
}

/** What came to the address of a source. */
export interface Arrival {
  readonly address: string
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly raw: Buffer
}

export type Arrived =
  | { readonly type: 'published'; readonly eventId: string; readonly topic: string }
  /** The sender asks whether this address is what it thinks. */
  | { readonly type: 'challenge'; readonly challenge: string }

/** Headers that hold secrets; expressions do not see them. */
const HIDDEN = /authorization|cookie|token|secret|signature/

/** Takes what senders send, and makes events of it. */
export class HookDelivery {
  readonly #options: HookDeliveryOptions

  constructor(options: HookDeliveryOptions) {
    this.#options = options
  }

  /** Resolves when the event is durable. The same delivery once more gives the event of the first one. */
  async take({ address, headers: given, raw }: Arrival): Promise<Arrived> {
    const { hooks, clock } = this.#options
    const found = await hooks.at(address)
    if (found === undefined) throw new ImpresarioError('NOT_FOUND', 'There is no such address for webhooks.')
    const { hook, secret } = found
    const headers = flat(given)
    if (!isGenuine({ headers, raw, now: wallTime(clock) }, secret, hook)) {
      throw new ImpresarioError('UNAUTHENTICATED', 'The signature does not fit the secret, or the message is too old.')
    }
    const body = this.#bodyOf(raw, headers, hook)
    const challenge = hook.preset === 'slack' ? challengeIn(body) : undefined
    return challenge === undefined ? this.#publish(hook, body, headers) : { type: 'challenge', challenge }
  }

  async #publish(hook: HookRecord, body: Data, headers: Headers): Promise<Arrived> {
    const { events } = this.#options
    const seen = Object.fromEntries(
      Object.entries(headers)
        .filter(([name]) => !HIDDEN.test(name))
        .map(([name, value]) => [name.replaceAll('-', '_'), value]),
    )
    const scope = { body, headers: seen }
    const topic = hook.topic === undefined ? topicOf(hook, body, headers) : textOf(valueOf(hook.topic, scope))
    const payload = hook.payload === undefined ? body : valueOf(hook.payload, scope)
    const delivery = deliveryOf(hook, body, headers)
    const key = delivery === undefined ? undefined : `hook ${hook.name} ${sha256(delivery)}`
    const actor = { id: hook.owner, isAdmin: false }
    const event = await events.publish({ topic, payload, source: hook.name, idempotencyKey: key }, actor)
    return { type: 'published', eventId: event.id, topic: event.topic }
  }

  #bodyOf(raw: Buffer, headers: Headers, { preset }: HookRecord): Data {
    const text = raw.toString('utf8')
    if (text === '') return null
    if (!(headers['content-type'] ?? '').includes('application/x-www-form-urlencoded')) return this.#json(text)
    const fields = Object.fromEntries(new URLSearchParams(text))
    const { payload } = fields
    return (preset === 'github' || preset === 'slack') && payload !== undefined ? this.#json(payload) : fields
  }

  #json(text: string): Data {
    try {
      this.#options.checkJson(text)
      return parseExact(text)
    } catch (error) {
      if (isImpresarioError(error)) throw error
      throw new ImpresarioError('INVALID_REQUEST', 'The body is not JSON.')
    }
  }
}

type Headers = Readonly<Record<string, string>>

function flat(headers: Arrival['headers']): Headers {
  const entries = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name.toLowerCase(), typeof value === 'string' ? value : value.join(', ')]],
  )
  return Object.fromEntries(entries)
}

function textOf(value: Data): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The author of the source made the mistake, and the sender gets to see it. */
function valueOf(source: string, scope: object): Data {
  try {
    return (compileExpression(source, HOOK_SCOPE).evaluate(scope) ?? null) as Data
  } catch (error) {
    if (!isImpresarioError(error)) throw error
    throw new ImpresarioError('INPUT_REFUSED', error.message)
  }
}

function textIn(body: Data, ...path: readonly string[]): string | undefined {
  let value: unknown = body
  for (const key of path) {
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as DataObject)[key] : undefined
  }
  return typeof value === 'string' && value !== '' ? value : undefined
}

function challengeIn(body: Data): string | undefined {
  return textIn(body, 'type') === 'url_verification' ? textIn(body, 'challenge') : undefined
}

/** What a sender calls it, as a topic: `Push Hook` is no part of one. */
function named(...parts: readonly (string | undefined)[]): string {
  const words = parts.map((part) => (part ?? 'message').toLowerCase().replaceAll(/[^a-z0-9_.-]+/g, '_'))
  return words
    .join('.')
    .replaceAll(/\.{2,}/g, '.')
    .replaceAll(/^\.|\.$/g, '')
    .slice(0, 200)
}

function topicOf({ preset, name }: HookRecord, body: Data, headers: Headers): string {
  switch (preset) {
    case 'github':
      return named('github', headers['x-github-event'])
    case 'gitlab':
      return named('gitlab', textIn(body, 'object_kind') ?? textIn(body, 'event_name'))
    case 'slack':
      return named(
        'slack',
        textIn(body, 'event', 'type') ?? (textIn(body, 'command') && 'command') ?? textIn(body, 'type'),
      )
    case 'stripe':
      return named('stripe', textIn(body, 'type'))
    case 'alertmanager':
    case 'grafana':
      return named(preset, textIn(body, 'status'))
    case 'standard':
      return named(name, textIn(body, 'type'))
    case 'hmac':
    case 'token':
      return named(name)
  }
}

/** What the sender calls this delivery, the same for each time that it is sent. */
function deliveryOf({ preset, signature }: HookRecord, body: Data, headers: Headers): string | undefined {
  switch (preset) {
    case 'github':
      return headers['x-github-delivery']
    case 'gitlab':
      return headers['idempotency-key'] ?? headers['webhook-id'] ?? headers['x-gitlab-event-uuid']
    case 'slack':
      // Commands and buttons have no id of an event.
      return textIn(body, 'event_id') ?? textIn(body, 'trigger_id')
    case 'stripe':
      return textIn(body, 'id')
    case 'standard':
      return headers['webhook-id']
    case 'hmac':
    case 'token': {
      const { deliveryHeader, timestampHeader, header } = signature
      if (deliveryHeader !== undefined) return headers[deliveryHeader]
      // With the time in it, a signature that comes again is the message that came before.
      return preset === 'hmac' && timestampHeader !== undefined ? headers[header]?.toLowerCase() : undefined
    }
    case 'alertmanager':
    case 'grafana':
      return undefined
  }
}
