import { expect, test } from 'vitest'
import { parsedAddress, tagsOf } from './address.ts'
import { slotOf } from './slots.ts'

test('[G-02] an address may leave out everything but the host', () => {
  expect(parsedAddress('redis://cache')).toEqual({
    hosts: [{ host: 'cache', port: 6379 }],
    isTls: false,
    username: undefined,
    password: undefined,
    database: 0,
    prefix: 'impresario:',
    namespace: 'main',
    sentinel: undefined,
    isCluster: false,
    shards: 1,
    isStrict: false,
  })
})

test('[G-02] an address says where, who, with what, and under which names', () => {
  expect(parsedAddress('rediss://ann:p%40ss@[::1]:7000/3?prefix=app/&namespace=test&strict=true')).toMatchObject({
    hosts: [{ host: '::1', port: 7000 }],
    isTls: true,
    username: 'ann',
    password: 'p@ss',
    database: 3,
    prefix: 'app/',
    namespace: 'test',
    isStrict: true,
  })
  expect(parsedAddress('redis://:pass@h').password).toBe('pass')
  expect(parsedAddress('redis://a,b:1?sentinel=house')).toMatchObject({
    hosts: [
      { host: 'a', port: 26_379 },
      { host: 'b', port: 1 },
    ],
    sentinel: 'house',
  })
  expect(parsedAddress('redis://a:1,b:2?cluster=true').isCluster).toBe(true)
})

test('[G-02] a namespace has one tag, or one for each of its shards', () => {
  expect(tagsOf(parsedAddress('redis://h'))).toEqual(['{main}'])
  const three = parsedAddress('redis://h?namespace=test&shards=3')
  expect(tagsOf(three, 'numbered')).toEqual(['{test/0}', '{test/1}', '{test/2}'])
  expect(tagsOf(three)).toHaveLength(3)
})

test('[G-02] shards are spread evenly over the slots, and so over the primaries', () => {
  for (const namespace of ['main', 'impresario', 'a/b', 'ключ']) {
    for (const [shards, primaries] of [
      [3, 3],
      [12, 2],
      [12, 3],
      [12, 4],
      [64, 8],
    ] as const) {
      const counts = Array.from({ length: primaries }, () => 0)
      for (const tag of tagsOf({ namespace, shards })) {
        const primary = Math.floor((slotOf(tag.slice(1, -1)) * primaries) / 16_384)
        counts[primary] = (counts[primary] ?? 0) + 1
      }
      expect(counts).toEqual(counts.map(() => shards / primaries))
    }
  }
})

test('[G-02] what cannot be meant is refused without repeating a password', () => {
  const wrong = [
    'http://u:secret@h',
    'redis://',
    'redis://u:secret@h:99999',
    'redis://u:secret@h/x',
    'redis://u:secret@h?db=1',
    'redis://u:sec%ret@h',
    'redis://u:secret@h?strict=yes',
    'redis://u:secret@h?cluster=true&sentinel=x',
    'redis://u:secret@h/2?cluster=true',
    'redis://u:secret@h?namespace=',
    'redis://u:secret@h?prefix={x}',
    'redis://u:secret@h?shards=0',
    'redis://u:secret@h?shards=257',
    'redis://u:secret@h?shards=two',
  ]
  for (const url of wrong) {
    let refusal: unknown
    try {
      parsedAddress(url)
    } catch (error) {
      refusal = error
    }
    expect(refusal).toMatchObject({ code: 'INVALID_CONFIGURATION' })
    expect(String(refusal)).not.toMatch(/sec%?ret/)
  }
})
