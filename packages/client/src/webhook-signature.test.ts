import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { verifyWebhook, WebhookError } from './index.ts'

/** The vector of the standard: its specification and all its libraries have it. */
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const BODY = '{"test": 2432232314}'
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
const SENT_AT = 1_614_265_330
const HEADERS = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': String(SENT_AT),
  'webhook-signature': SIGNATURE,
}
const now = SENT_AT * 1_000
const OTHER = `whsec_${Buffer.alloc(32, 1).toString('base64')}`

test('[H-07] the vector of the standard is genuine, in every shape that bodies, headers and secrets have', async () => {
  const expected = { id: HEADERS['webhook-id'], sentAt: new Date(now), body: { test: 2_432_232_314 } }
  const capitals = Object.fromEntries(Object.entries(HEADERS).map(([name, value]) => [name.toUpperCase(), [value]]))
  for (const headers of [HEADERS, new Headers(HEADERS), capitals]) {
    for (const body of [BODY, Buffer.from(BODY), new TextEncoder().encode(BODY)]) {
      for (const secret of [SECRET, SECRET.slice('whsec_'.length), [OTHER, SECRET]]) {
        expect(await verifyWebhook(body, headers, secret, { now })).toEqual(expected)
      }
    }
  }
})

test('[H-07] one fitting signature among others is enough', async () => {
  const signatures = ['v1a,AAAA', 'v1,', 'v1', 'v1,***', `v1,${Buffer.alloc(32).toString('base64')}`, SIGNATURE]
  const headers = { ...HEADERS, 'webhook-signature': signatures.join(' ') }
  expect(await verifyWebhook(BODY, headers, SECRET, { now })).toMatchObject({ id: HEADERS['webhook-id'] })
})

test.for([
  ['another body', { body: `${BODY} ` }, 'fits the secret'],
  ['another secret', { secret: OTHER }, 'fits the secret'],
  ['no secret', { secret: [] }, 'fits the secret'],
  ['another id', { headers: { 'webhook-id': 'msg_2' } }, 'fits the secret'],
  ['another time', { headers: { 'webhook-timestamp': String(SENT_AT + 1) } }, 'fits the secret'],
  ['another version', { headers: { 'webhook-signature': SIGNATURE.replace('v1', 'v2') } }, 'fits the secret'],
  ['half a signature', { headers: { 'webhook-signature': SIGNATURE.slice(0, 20) } }, 'fits the secret'],
  ['too many signatures', { headers: { 'webhook-signature': `${'v1,AAAA '.repeat(10)}${SIGNATURE}` } }, 'fits'],
  ['no signature', { headers: { 'webhook-signature': '' } }, '"webhook-signature"'],
  ['no id', { headers: { 'webhook-id': undefined } }, '"webhook-id"'],
  ['no time', { headers: { 'webhook-timestamp': undefined } }, '"webhook-timestamp"'],
  ['a time that is none', { headers: { 'webhook-timestamp': '1e9' } }, 'no time'],
] as const)('[H-07] %s is refused', async ([, change, words]) => {
  const { body, headers, secret } = {
    body: BODY,
    secret: SECRET,
    ...change,
    headers: { ...HEADERS, ...headersOf(change) },
  }
  const refused = verifyWebhook(body, headers, secret, { now })
  await expect(refused).rejects.toBeInstanceOf(WebhookError)
  await expect(refused).rejects.toThrow(words)
})

function headersOf(change: object): Readonly<Record<string, string | undefined>> {
  return 'headers' in change ? (change.headers as Readonly<Record<string, string | undefined>>) : {}
}

test('[H-07] messages of another time are refused, in both directions', async () => {
  const at = (ms: number, toleranceMs?: number) =>
    verifyWebhook(BODY, HEADERS, SECRET, { now: now + ms, ...(toleranceMs === undefined ? {} : { toleranceMs }) })
  expect(await at(300_000)).toMatchObject({ id: HEADERS['webhook-id'] })
  expect(await at(-300_000)).toMatchObject({ id: HEADERS['webhook-id'] })
  await expect(at(300_001)).rejects.toThrow('too old')
  await expect(at(-300_001)).rejects.toThrow('the future')
  await expect(at(2, 1)).rejects.toThrow('too old')
  await expect(verifyWebhook(BODY, HEADERS, SECRET)).rejects.toThrow('too old')
})

test('[H-07] a secret that is none is a mistake of the receiver, and said as one', async () => {
  for (const secret of ['', 'whsec_', 'whsec_***']) {
    await expect(verifyWebhook(BODY, HEADERS, secret, { now })).rejects.toBeInstanceOf(TypeError)
  }
})

test('[H-07] a genuine body that is no object is refused', async () => {
  for (const body of ['[]', 'null', '7', 'x', '']) {
    const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
    const content = `${HEADERS['webhook-id']}.${SENT_AT}.${body}`
    const signature = `v1,${createHmac('sha256', key).update(content).digest('base64')}`
    const headers = { ...HEADERS, 'webhook-signature': signature }
    await expect(verifyWebhook(body, headers, SECRET, { now })).rejects.toThrow('no JSON object')
  }
})
