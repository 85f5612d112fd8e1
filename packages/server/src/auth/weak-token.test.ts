import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { weaknessOf, WELL_KNOWN } from './weak-token.ts'

test('[H-03] random tokens of every usual kind pass', () => {
  for (let round = 0; round < 2_000; round += 1) {
    const bytes = createHash('sha256').update(String(round)).digest().subarray(0, 24)
    const digits = [...bytes.subarray(0, 16)].map((byte) => byte % 10).join('')
    for (const token of [bytes.toString('hex'), bytes.toString('base64'), bytes.toString('base64url')]) {
      expect(weaknessOf(token)).toBeUndefined()
    }
    expect(weaknessOf(`worker-${bytes.toString('base64url').slice(0, 16)}`)).toBeUndefined()
    expect(weaknessOf(digits)).toBeUndefined()
  }
  expect(weaknessOf('f81d4fae-7dec-11d0-a765-00a0c91e6bf6')).toBeUndefined()
})

test.each([...WELL_KNOWN])('[H-03] "%s" is known to everybody', (token) => {
  expect(weaknessOf(token.toUpperCase())).toMatch(/well-known/)
})

test.each([
  'aaaaaaaaaaaaaaaaaaaa',
  'abababababababababab',
  '1234567890123456789',
  'abcdefghijklmnopqrstuvwxyz',
  'zyxwvutsrqponmlkjihgf',
  '0123456789abcdef0123',
  'my-secret-worker-token',
  'token-of-the-workers',
  'SuperSecretToken123',
  'please-change-me-please',
  'password1234password',
  'client_token_client_token_1',
  'qwertyuiopasdfghjkl',
  'qwerty-qwerty-qwerty',
])('[H-03] "%s" can be guessed', (token) => {
  expect(weaknessOf(token)).toMatch(/easy to guess/)
})
