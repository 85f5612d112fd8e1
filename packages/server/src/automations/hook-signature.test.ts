import { createHmac } from 'node:crypto'
import type { HookRecord } from '@impresario/automations'
import { describe, expect, test } from 'vitest'
import { isGenuine } from './hook-signature.ts'

const NOW = Date.parse('2026-03-02T08:00:00Z')
const SECONDS = NOW / 1_000

function hook(preset: HookRecord['preset'], signature: Partial<HookRecord['signature']> = {}): HookRecord {
  const plain = { encoding: 'hex', prefix: '', deliveryHeader: undefined, timestampHeader: undefined } as const
  return {
    preset,
    name: 'x',
    owner: 'anna',
    address: 'a',
    sealed: '',
    description: '',
    topic: undefined,
    payload: undefined,
    signature: { header: 'x-signature', algorithm: 'sha256', ...plain, ...signature },
    createdAt: 0,
    updatedAt: 0,
    updatedBy: 'anna',
  }
}

interface Case {
  readonly hook: HookRecord
  readonly secret: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly now?: number
}

const BODY = '{"a": 1}'
const mac = (secret: string, text: string, encoding: 'hex' | 'base64' = 'hex', algorithm = 'sha256'): string =>
  createHmac(algorithm, secret).update(text).digest(encoding)
const slackBody =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'

const CASES: Readonly<Record<string, Case>> = {
  // The examples in the documentation of GitHub, Slack and Standard Webhooks.
  github: {
    hook: hook('github'),
    secret: "It's a Secret to Everybody",
    body: 'Hello, World!',
    headers: { 'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' },
  },
  slack: {
    hook: hook('slack'),
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    body: slackBody,
    headers: {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    now: 1_531_420_618_000,
  },
  standard: {
    hook: hook('standard'),
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    body: '{"test": 2432232314}',
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,rubbish v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    now: 1_614_265_330_000,
  },
  'standard, without the prefix of the secret': {
    hook: hook('standard'),
    secret: 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    body: '{"test": 2432232314}',
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    now: 1_614_265_330_000,
  },
  gitlab: { hook: hook('gitlab'), secret: 'gitlab-token', body: BODY, headers: { 'x-gitlab-token': 'gitlab-token' } },
  stripe: {
    hook: hook('stripe'),
    secret: 'whsec_stripe',
    body: BODY,
    headers: { 'stripe-signature': `t=${SECONDS},v0=ab,v1=00,v1=${mac('whsec_stripe', `${SECONDS}.${BODY}`)}` },
  },
  alertmanager: {
    hook: hook('alertmanager'),
    secret: 'alert-token',
    body: BODY,
    headers: { authorization: 'Bearer alert-token' },
  },
  'alertmanager, basic': {
    hook: hook('alertmanager'),
    secret: 'alert-token',
    body: BODY,
    headers: { authorization: `Basic ${Buffer.from('am:alert-token').toString('base64')}` },
  },
  grafana: {
    hook: hook('grafana'),
    secret: 'grafana-secret',
    body: BODY,
    headers: { 'x-grafana-alerting-signature': mac('grafana-secret', BODY) },
  },
  hmac: {
    hook: hook('hmac', { prefix: 'sha1=', algorithm: 'sha1', encoding: 'base64', timestampHeader: 'x-time' }),
    secret: 'own-secret',
    body: BODY,
    headers: {
      'x-time': String(SECONDS),
      'x-signature': `sha1=${mac('own-secret', `${SECONDS}.${BODY}`, 'base64', 'sha1')}`,
    },
  },
  'hmac, in capitals': {
    hook: hook('hmac', { prefix: 'sha256=' }),
    secret: 'own-secret',
    body: BODY,
    headers: { 'x-signature': `sha256=${mac('own-secret', BODY).toUpperCase()}` },
  },
  token: { hook: hook('token'), secret: 'plain-token', body: BODY, headers: { 'x-signature': 'plain-token' } },
}

const TIMED = ['slack', 'standard', 'stripe', 'hmac']
const SIGNED = [...TIMED, 'github', 'grafana']

function check({ hook: source, secret, body, headers, now = NOW }: Case, more: Partial<Case> = {}): boolean {
  const { body: text = body, now: at = now, secret: key = secret, headers: sent = headers } = more
  return isGenuine({ headers: sent, raw: Buffer.from(text), now: at }, key, source)
}

/** With another letter at its end. */
function altered(text = ''): string {
  return text.replace(/[A-Za-z0-9](?=[^A-Za-z0-9]*$)/, (letter) => (letter === '0' ? '1' : '0'))
}

describe.each(Object.entries(CASES))('[K-15] a message of %s', (_name, one) => {
  test('is known by its secret, and by no other; without a signature it is refused', () => {
    expect(check(one)).toBe(true)
    expect(check(one, { secret: 'another-secret' })).toBe(false)
    expect(check(one, { headers: {} })).toBe(false)
    for (const header of Object.keys(one.headers)) {
      const headers = { ...one.headers, [header]: altered(one.headers[header]) }
      expect({ header, isGenuine: check(one, { headers }) }).toEqual({ header, isGenuine: false })
    }
  })
})

const casesOf = (names: readonly string[]): [string, Case][] =>
  Object.entries(CASES).filter(([name]) => names.includes(name))

test.each(casesOf(SIGNED))('[K-15] a message of %s is refused when one byte of it has changed', (_name, one) => {
  expect(check(one, { body: `${one.body} ` })).toBe(false)
})

test.each(casesOf(TIMED))(
  '[K-15] a message of %s is refused when it is older than five minutes, or from the future',
  (_name, one) => {
    const { now = NOW } = one
    expect(check(one, { now: now + 299_000 })).toBe(true)
    expect(check(one, { now: now + 301_000 })).toBe(false)
    expect(check(one, { now: now - 301_000 })).toBe(false)
  },
)

test.each(['whsec_$$', 'whsec_', '!!!!!!!!!!'])(
  '[K-15] nobody signs with the empty key that "%s" decodes to',
  (secret) => {
    const text = `msg_1.${SECONDS}.${BODY}`
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(SECONDS),
      'webhook-signature': `v1,${mac('', text, 'base64')}`,
    }
    for (const preset of ['standard', 'gitlab'] as const) {
      expect(check({ hook: hook(preset), secret, body: BODY, headers })).toBe(false)
    }
  },
)
