import { describe, expect, test } from 'vitest'
import type { JsonObject } from './json.ts'
import { HMAC_VECTORS } from './signing.fixture.ts'
import {
  canonicalHash,
  canonicalMessage,
  EVENT_UNSIGNED,
  signMessage,
  verifyMessage,
  withSignature,
} from './signing.ts'

interface Vectors {
  readonly sign: readonly { payload: JsonObject; secret: string; ignore: readonly string[] | null; hex: string }[]
  readonly dict_hash: readonly { obj: JsonObject; sha256: string }[]
}

const vectors = JSON.parse(HMAC_VECTORS) as Vectors

describe('the vectors of an existing implementation', () => {
  test.each(vectors.sign.map((vector, index) => [index, vector] as const))(
    '[H-03] signature %i is the same',
    async (_index, { payload, secret, ignore, hex }) => {
      expect(await signMessage(payload, secret, ignore ?? [])).toBe(hex)
      expect(await verifyMessage(payload, secret, hex, ignore ?? [])).toBe(true)
      expect(await verifyMessage({ ...payload, more: 1 }, secret, hex, ignore ?? [])).toBe(false)
      expect(await verifyMessage(payload, `${secret}x`, hex, ignore ?? [])).toBe(false)
    },
  )

  test.each(vectors.dict_hash)('[H-03] the hash of a list of skills is the same', async ({ obj, sha256 }) => {
    expect(await canonicalHash(obj)).toBe(sha256)
  })
})

describe('the canonical form', () => {
  test.each<[string, JsonObject, string]>([
    [
      'keys that look like numbers stand in the order of their characters',
      { b: 1, 10: 2, 9: 3, '': 4 },
      '{"":4,"10":2,"9":3,"b":1}',
    ],
    ['nulls leave objects and stay in lists', { a: null, b: [null, { c: null, d: 1 }] }, '{"b":[null,{"d":1}]}'],
    [
      'whole numbers have no fraction, however they were written',
      { a: JSON.parse('1.0') as number, b: -0, c: 2.5, d: 1e-7 },
      '{"a":1,"b":0,"c":2.5,"d":1e-7}',
    ],
    [
      'large whole numbers keep their digits',
      { a: 1e21, b: 2 ** 60 },
      '{"a":1000000000000000000000,"b":1152921504606846976}',
    ],
    ['characters of two units come after all others', { '\u{1F600}': 1, '\uFFEE': 2 }, '{"\uFFEE":2,"\u{1F600}":1}'],
    [
      'the signature is not a part of what it signs',
      { _signature: 'x', security: {}, a: { security: 1 } },
      '{"a":{"security":1}}',
    ],
  ])('[H-03] %s', (_title, payload, text) => {
    expect(canonicalMessage(payload)).toBe(text)
  })

  test('[H-03] the names that an event collects on its way are not signed', async () => {
    const event = await withSignature(
      { worker_id: 'w', timestamp: 5, bubbling_chain: ['a'] },
      { id: 'w', secret: 's' },
      EVENT_UNSIGNED,
    )
    expect(event.security.signer_id).toBe('w')
    const moved = { ...event, bubbling_chain: ['a', 'b'] }
    expect(await verifyMessage(moved, 's', event.security.signature, EVENT_UNSIGNED)).toBe(true)
    expect(await verifyMessage(moved, 's', event.security.signature)).toBe(false)
  })
})

test.each(['', 'abc', 'g'.repeat(64), 'a'.repeat(65)])('[H-03] %j is no signature', async (signature) => {
  expect(await verifyMessage({ a: 1 }, 's', signature)).toBe(false)
})
