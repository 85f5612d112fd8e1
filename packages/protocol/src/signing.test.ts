import { describe, expect, test } from 'vitest'
import type { DataObject } from './exact/exact-json.ts'
import { ExactNumber } from './exact/exact-number.ts'
import type { JsonObject } from './json.ts'
import { HMAC_VECTORS, OLDER_VECTORS } from './signing.fixture.ts'
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
      expect(await verifyMessage(JSON.stringify(payload), secret, hex, ignore ?? [])).toBe(true)
      expect(await verifyMessage(JSON.stringify({ ...payload, more: 1 }), secret, hex, ignore ?? [])).toBe(false)
      expect(await verifyMessage(JSON.stringify(payload), `${secret}x`, hex, ignore ?? [])).toBe(false)
    },
  )

  test.each(vectors.dict_hash)('[H-03] the hash of a list of skills is the same', async ({ obj, sha256 }) => {
    expect(await canonicalHash(obj)).toBe(sha256)
  })
})

interface OlderVectors {
  readonly secret: string
  readonly messages: readonly { readonly text: string; readonly signatures: Readonly<Record<string, string>> }[]
}

describe('the readings of older releases', () => {
  const { secret, messages } = JSON.parse(OLDER_VECTORS) as OlderVectors
  const cases = messages.flatMap(({ text, signatures }, at) =>
    Object.entries(signatures).map(([reading, hex]) => [`${at}, ${reading}`, text, hex] as const),
  )

  test.each(cases)('[H-03] message %s', async (_title, text, hex) => {
    expect(await verifyMessage(text, secret, hex)).toBe(true)
    expect(await verifyMessage(text, 'another', hex)).toBe(false)
    for (const [from, to] of [
      ['8.0', '8.5'],
      ['"idle"', '"busy"'],
      ['9007199254740993', '9007199254740992'],
      ['2.5', '2.5000000000000001'],
    ] as const) {
      expect(await verifyMessage(text.replace(from, to), secret, hex)).toBe(false)
    }
  })

  test('[H-03] parsed numbers would not do', () => {
    for (const { text } of messages) expect(canonicalMessage(JSON.parse(text) as JsonObject)).not.toContain('8.0')
  })

  test('[H-03] what is no object is signed by nobody', async () => {
    for (const text of ['[]', '5', '"a"', 'null']) expect(await verifyMessage(text, 's', 'a'.repeat(64))).toBe(false)
  })
})

describe('the canonical form', () => {
  test.each<[string, DataObject, string]>([
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
    [
      'numbers that no double holds keep theirs too',
      { a: 9_007_199_254_740_993n, b: new ExactNumber('0.30000000000000001'), c: new ExactNumber('1e-400') },
      '{"a":9007199254740993,"b":0.30000000000000001,"c":1e-400}',
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
    expect(await verifyMessage(JSON.stringify(moved), 's', event.security.signature, EVENT_UNSIGNED)).toBe(true)
    expect(await verifyMessage(JSON.stringify(moved), 's', event.security.signature)).toBe(false)
  })
})

test.each(['', 'abc', 'g'.repeat(64), 'a'.repeat(65)])('[H-03] %j is no signature', async (signature) => {
  expect(await verifyMessage('{"a":1}', 's', signature)).toBe(false)
})
