import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { deriveSecret } from './bench.fixture.ts'
import { sign, webhookHeaders, webhookId, webhookSecret } from './signature.ts'

const OWNER = { clientId: 'acme', address: 'https://hooks.example/take' }

test('[H-07] the vector of the standard', () => {
  const signed = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1_614_265_330, body: '{"test": 2432232314}' }
  expect(sign(signed, ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'])).toBe(
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  )
})

test('[H-07] what we sign, the package of the standard verifies, and signs the same', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.integer({ min: 0, max: 9 }),
      fc.stringMatching(/^[\w-]{1,40}$/),
      (text, n, id) => {
        const body = JSON.stringify({ text })
        const secret = webhookSecret(deriveSecret, OWNER, n)
        const at = new Date(Math.floor(Date.now() / 1_000) * 1_000)
        const headers = webhookHeaders({ id, timestamp: at.getTime() / 1_000, body }, [secret])
        const theirs = new Webhook(secret)
        expect(theirs.verify(body, headers)).toEqual(JSON.parse(body))
        expect(theirs.sign(id, at, body)).toBe(headers['webhook-signature'])
      },
    ),
    { numRuns: 50 },
  )
})

test('[H-07] with two secrets each of them verifies, and no other', () => {
  const secrets = [2, 1].map((n) => webhookSecret(deriveSecret, OWNER, n))
  const body = '{"a":1}'
  const headers = webhookHeaders({ id: 'm', timestamp: Math.floor(Date.now() / 1_000), body }, secrets)
  for (const secret of secrets) expect(new Webhook(secret).verify(body, headers)).toEqual({ a: 1 })
  expect(() => new Webhook(webhookSecret(deriveSecret, OWNER, 0)).verify(body, headers)).toThrow(
    'No matching signature',
  )
  for (const changed of ['{"a":2}', '{"a":1} ']) {
    expect(() => new Webhook(secrets[0] ?? '').verify(changed, headers)).toThrow('No matching signature')
  }
})

test('[H-07] each client, address and rotation has a secret of its own', () => {
  const owners = [OWNER, { ...OWNER, clientId: 'other' }, { ...OWNER, address: 'https://hooks.example/other' }]
  const secrets = owners.flatMap((owner) => [0, 1, 2].map((n) => webhookSecret(deriveSecret, owner, n)))
  expect(new Set(secrets).size).toBe(9)
  for (const secret of secrets) expect(secret).toMatch(/^whsec_[\w+/]{43}=$/)
  // No two owners are written alike, whatever is in their names.
  expect(webhookSecret(deriveSecret, { clientId: 'a","b', address: 'c' }, 0)).not.toBe(
    webhookSecret(deriveSecret, { clientId: 'a', address: 'b","c' }, 0),
  )
  expect(() => webhookSecret(() => Buffer.alloc(16), OWNER, 0)).toThrow('24 to 64 bytes')
})

test('[H-07] an id that receivers see holds no full stop and fits a header', () => {
  expect(webhookId('msg_0199-a_1_finished')).toBe('msg_0199-a_1_finished')
  for (const odd of ['a.b', 'a b', 'ä', 'a\r\nx: y', 'x'.repeat(300)]) {
    expect(webhookId(odd)).toMatch(/^msg_[\w-]{43}$/)
    expect(webhookId(odd)).toBe(webhookId(odd))
  }
  expect(webhookId('a.b')).not.toBe(webhookId('a.c'))
})
