import type { DataObject } from '@impresario/protocol'
import { compileExpression } from '../expression/expression.ts'
import { Problems } from '../pipeline/problem.ts'
import { FieldReader } from '../pipeline/reader.ts'

export const HOOK_PRESETS = [
  'github',
  'gitlab',
  'slack',
  'stripe',
  'alertmanager',
  'grafana',
  'standard',
  'hmac',
  'token',
] as const
type HookPreset = (typeof HOOK_PRESETS)[number]

/** How a sender signs, where the preset leaves it open. */
interface HookSignature {
  readonly header: string
  readonly algorithm: 'sha1' | 'sha256' | 'sha512'
  readonly encoding: 'hex' | 'base64'
  /** What stands before the signature, such as `sha256=`. */
  readonly prefix: string
  /** The header with the id of a delivery, by which a redelivery is known. */
  readonly deliveryHeader: string | undefined
  /** The header with the time in Unix seconds. It is signed too, as `<time>.<body>`, and may not be old. */
  readonly timestampHeader: string | undefined
}

export interface HookSpec {
  readonly preset: HookPreset
  readonly description: string
  readonly signature: HookSignature
  /** Expressions over `body` and `headers`; without them the preset decides. */
  readonly topic: string | undefined
  readonly payload: string | undefined
}

/** What expressions of a source can read. */
export const HOOK_SCOPE = ['body', 'headers']

const NAME = /^[A-Za-z][\w-]{0,63}$/
const STANDARD_SECRET = /^whsec_[A-Za-z0-9+/_-]{22,}={0,2}$/
const HEADER = /^[A-Za-z][\w-]{0,99}$/

/** Reads a source of webhooks as it is written, or refuses it with all its problems. */
export function readHook(name: string, body: DataObject): HookSpec & { readonly secret: string | undefined } {
  const problems = new Problems()
  const fields = new FieldReader(body, '', problems)
  if (!NAME.test(name)) {
    fields.refuse('name', 'Must begin with a letter and have up to 64 letters, digits, "_" and "-".')
  }
  const preset = fields.oneOf('preset', HOOK_PRESETS)
  if (preset === undefined && !fields.has('preset')) {
    fields.refuse('preset', `Must be one of ${HOOK_PRESETS.join(', ')}.`)
  }
  const [topic, payload] = [expressionIn(fields, 'topic', problems), expressionIn(fields, 'payload', problems)]
  const secret = fields.text('secret', { max: 500 })
  if (secret !== undefined && secret.length < 8) fields.refuse('secret', 'Must have 8 characters at least.')
  if (preset === 'standard' && secret?.startsWith('whsec_') === true && !STANDARD_SECRET.test(secret)) {
    fields.refuse('secret', 'Must be base64 of 16 bytes at least behind "whsec_". Leave it out to have one made.')
  }
  const spec = {
    preset: preset ?? 'token',
    description: fields.text('description', { max: 500 }) ?? '',
    signature: signatureIn(fields, preset ?? 'token', problems),
    topic,
    payload,
    secret,
  }
  fields.end()
  problems.throwIfAny('The source of webhooks')
  return spec
}

function expressionIn(fields: FieldReader, key: string, problems: Problems): string | undefined {
  const source = fields.text(key, { max: 2_000 })
  if (source !== undefined) problems.try(key, undefined, () => compileExpression(source, HOOK_SCOPE))
  return source
}

function signatureIn(fields: FieldReader, preset: HookPreset, problems: Problems): HookSignature {
  const inner = new FieldReader(fields.object('signature') ?? {}, 'signature', problems)
  const header = (key: string): string | undefined => {
    const name = inner.text(key, { max: 100 })
    if (name === undefined || HEADER.test(name)) return name?.toLowerCase()
    return inner.refuse(key, 'Must be the name of a header, such as X-Signature.')
  }
  const signature: HookSignature = {
    header: header('header') ?? (preset === 'token' ? 'x-webhook-token' : 'x-signature'),
    algorithm: inner.oneOf('algorithm', ['sha1', 'sha256', 'sha512']) ?? 'sha256',
    encoding: inner.oneOf('encoding', ['hex', 'base64']) ?? 'hex',
    prefix: inner.text('prefix', { max: 50 }) ?? '',
    deliveryHeader: header('delivery_header'),
    timestampHeader: header('timestamp_header'),
  }
  if (fields.has('signature') && preset !== 'hmac' && preset !== 'token') {
    fields.refuse('signature', `The preset ${preset} says how its sender signs. Leave it out, or use the preset hmac.`)
  }
  inner.end()
  return signature
}
