import { expect, test } from 'vitest'
import { z } from 'zod'
import { contract, isTaskContract, partProblems, validate } from './contract.ts'
import type { InputOf, OutcomesOf, OutputOf, ReceivedInputOf, ReturnedOutputOf, Schema } from './contract.ts'

const media = contract('media', {
  transcode: {
    input: z.object({ path: z.string(), preset: z.enum(['720p', '1080p']).default('720p') }),
    output: z.object({ url: z.string(), seconds: z.number() }),
    outcomes: { needs_review: z.object({ reason: z.string() }) },
  },
  thumbnail: {
    input: z.object({ url: z.string(), at: z.number() }),
    output: z.object({ image: z.string() }),
  },
})

test('[A-10] an entry carries its full name and its schemas', () => {
  expect(media.transcode.name).toBe('media.transcode')
  expect(Object.keys(media.transcode.outcomes)).toEqual(['needs_review'])
  expect(media.thumbnail.outcomes).toEqual({})
  expect(isTaskContract(media.thumbnail)).toBe(true)
  expect(isTaskContract(() => 1)).toBe(false)
  expect(isTaskContract({ name: 'media.thumbnail' })).toBe(false)
})

test('[A-10] calling an entry makes a task of it', () => {
  expect(media.thumbnail({ url: 'u', at: 3 }, { priority: 2, resultTimeout: '30s' })).toEqual({
    kind: 'task',
    type: 'media.thumbnail',
    params: { url: 'u', at: 3 },
    priority: 2,
    resultTimeout: '30s',
  })
})

test('[A-10] an empty prefix leaves the bare name', () => {
  const plain = contract('', { echo: { input: z.object({}), output: z.object({}) } })
  const name: 'echo' = plain.echo.name
  expect(name).toBe('echo')
})

test('[A-10] names that cannot travel, and outcomes that are always there, are refused', () => {
  const spec = { input: z.object({}), output: z.object({}) }
  expect(() => contract('media', { 'two words': spec })).toThrow(/"media.two words" cannot name a task/)
  expect(() => contract('m', { ['x'.repeat(300)]: spec })).toThrow(/at most 200/)
  expect(() => contract('m', { a: { ...spec, outcomes: { success: z.string() } } })).toThrow(/describe success/i)
  expect(() => contract('m', { a: { ...spec, outcomes: { failure: z.string() } } })).toThrow(
    /"failure" is always there/,
  )
})

test('[A-10] the types of both sides follow from the schemas', () => {
  const input: InputOf<typeof media.transcode> = { path: 'p' }
  const received: ReceivedInputOf<typeof media.transcode> = { path: 'p', preset: '720p' }
  const output: OutputOf<typeof media.transcode> = { url: 'u', seconds: 1 }
  const returned: ReturnedOutputOf<typeof media.transcode> = output
  const outcomes: OutcomesOf<typeof media.transcode> = { needs_review: { reason: 'r' } }
  const none: keyof OutcomesOf<typeof media.thumbnail> extends never ? true : false = true
  // @ts-expect-error params of the wrong type
  media.thumbnail({ url: 'u', at: 'three' })
  // @ts-expect-error an entry that the contract does not have
  expect(media.missing).toBeUndefined()
  expect([input, received, output, returned, outcomes, none]).toHaveLength(6)
})

test('a value is validated by schemas that answer now and by those that answer later', async () => {
  expect(await validate(media.transcode.input, { path: 'p' })).toEqual({
    value: { path: 'p', preset: '720p' },
  })
  const later = z.string().refine(async (text) => text.length > 2, 'too short')
  expect(await validate(later, 'abc')).toEqual({ value: 'abc' })
  expect(await validate(later, 'a')).toEqual({ problems: ['too short'] })
})

test('[B-14] of a part only what is there is looked at', async () => {
  const schema = z.object({ n: z.number(), big: z.bigint(), deep: z.object({ x: z.string() }) })
  expect(await partProblems(schema, {})).toEqual([])
  expect(await partProblems(schema, { n: 1, other: true })).toEqual([])
  expect(await partProblems(schema, { n: 2n ** 80n, big: 2n ** 80n })).toEqual([])
  expect(await partProblems(schema, { n: '1', deep: {} })).toEqual([
    'n: Invalid input: expected number, received string',
    'deep.x: Invalid input: expected string, received undefined',
  ])
  expect(await partProblems(schema, { n: 2n ** 80n, deep: { x: 2n ** 80n } })).toEqual([
    'deep.x: Invalid input: expected string, received bigint',
  ])
  expect(await partProblems(z.object({ n: z.number() }).strict(), { m: 1 })).toEqual(['Unrecognized key: "m"'])
  const later: Schema = {
    '~standard': {
      version: 1,
      vendor: 'v',
      validate: async () => ({ issues: [{ message: 'no', path: [{ key: 'a' }] }] }),
    },
  }
  expect(await partProblems(later, { a: 1 })).toEqual(['a: no'])
  expect(await partProblems(later, { b: 1 })).toEqual([])
})

test('every problem is one sentence that begins with its place', async () => {
  const result = await validate(z.object({ a: z.array(z.number()) }), { a: [1, 'two'] })
  expect(result).toEqual({ problems: [expect.stringMatching(/^a\.1: .*expected number/)] })
  const custom: Schema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: () => ({ issues: [{ message: 'no', path: [{ key: 'k' }] }, { message: 'never' }] }),
    },
  }
  expect(await validate(custom, 1)).toEqual({ problems: ['k: no', 'never'] })
})
