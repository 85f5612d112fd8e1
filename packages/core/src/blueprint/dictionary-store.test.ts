import { expect, test } from 'vitest'
import { createDictionaryStore } from './dictionary-store.ts'

test('[A-07] a dictionary store gives back what was put in', async () => {
  const store = createDictionaryStore<number>({ a: 1 })
  await store.set('b', 2)
  expect(await store.get('a')).toBe(1)
  expect(await store.get('b')).toBe(2)
  expect(await store.get('c')).toBeUndefined()
  expect(await store.has('b')).toBe(true)
  expect(await store.keys()).toEqual(['a', 'b'])
  expect(await store.size()).toBe(2)
  expect(await store.delete('a')).toBe(true)
  expect(await store.delete('a')).toBe(false)
  expect(await store.has('a')).toBe(false)
})

test('[A-07] names of the language are ordinary keys', async () => {
  const store = createDictionaryStore()
  expect(await store.get('constructor')).toBeUndefined()
  await store.set('__proto__', 1)
  expect(await store.keys()).toEqual(['__proto__'])
})
