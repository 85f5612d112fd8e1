import type { Job } from '@impresario/core'
import type { Json, JsonObject } from '@impresario/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cutSnapshot, jobSnapshot, sizeWithin } from './snapshot.ts'

const JOB: Job = {
  id: 'j',
  blueprint: 'b',
  blueprintVersion: 1,
  client: { id: 'c' },
  status: 'running',
  state: 's',
  visit: 1,
  failures: 0,
  initialData: {},
  stateHistory: {},
  branches: {},
  priority: 0,
  depth: 0,
  trail: [],
  createdAt: 0,
  updatedAt: 0,
}
const jobWith = (initialData: JsonObject, stateHistory: JsonObject): Job => ({ ...JOB, initialData, stateHistory })
const bytesOf = (value: Json): number => Buffer.byteLength(JSON.stringify(value))

test('[G-04] a snapshot has the initial data and the dictionary of the job', () => {
  const job = jobWith({ title: 'x' }, { scenes: [1, 2] })
  expect(jobSnapshot(job, 1_000)).toEqual({
    status: 'running',
    state: 's',
    initial_data: { title: 'x' },
    state_history: { scenes: [1, 2] },
  })
  const error = { code: 'TIMEOUT_ERROR', message: 'late', state: 's' } as const
  expect(jobSnapshot({ ...job, error, progress: { fraction: 0.5 } }, 1_000)).toMatchObject({
    progress: 0.5,
    error_code: 'TIMEOUT_ERROR',
  })
})

test('[G-04] what does not fit is left out by itself and named; what is beside it stays', () => {
  const long = 'x'.repeat(500)
  const snapshot = jobSnapshot(jobWith({ body: long, id: 7 }, { small: 1, report: { text: long }, last: 2 }), 300)
  expect(snapshot).toMatchObject({
    initial_data: { id: 7 },
    state_history: { small: 1, last: 2 },
    truncated: ['initial_data.body', 'state_history.report'],
  })
})

test('[G-04] each of the two may use what the other leaves', () => {
  const text = 'x'.repeat(800)
  expect(jobSnapshot(jobWith({ text }, {}), 1_000)).not.toHaveProperty('truncated')
  expect(jobSnapshot(jobWith({}, { text }), 1_000)).not.toHaveProperty('truncated')
  expect(jobSnapshot(jobWith({ text }, { text }), 1_000)).toMatchObject({
    initial_data: {},
    state_history: { text },
    truncated: ['initial_data.text'],
  })
})

test('[G-04] of very many only some are named, by the beginning of their names', () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_unused, index) => [`${index} ${'k'.repeat(300)}`, 'x']))
  const { truncated } = jobSnapshot(jobWith(many, {}), 10)
  expect(truncated).toHaveLength(21)
  expect(truncated).toContain('and 30 more')
  expect(bytesOf(truncated ?? null)).toBeLessThan(3_000)
})

test('[G-04] without any room the data is only named', () => {
  expect(jobSnapshot(jobWith({ a: 1 }, {}), 0)).toMatchObject({ initial_data: {}, truncated: ['initial_data.a'] })
  expect(cutSnapshot(JOB)).toEqual({ status: 'running', state: 's', truncated: ['initial_data', 'state_history'] })
})

test('[G-04] [C-10] whatever the data, both together are never larger than the bound', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('ü', '😀', '\n\u0000', 'x'.repeat(90)))
  const value = fc.oneof(text, fc.integer(), fc.array(text, { maxLength: 5 }))
  const dictionary = fc.dictionary(text, value, { maxKeys: 6 })
  fc.assert(
    fc.property(dictionary, dictionary, fc.integer({ min: 4, max: 400 }), (data, history, bytesMax) => {
      const {
        initial_data: kept = {},
        state_history: also = {},
        truncated,
      } = jobSnapshot(jobWith(plain(data), plain(history)), bytesMax)
      expect(bytesOf(kept) + bytesOf(also)).toBeLessThanOrEqual(bytesMax)
      const isWhole = bytesOf(kept) + bytesOf(also) === bytesOf(plain(data)) + bytesOf(plain(history))
      expect(truncated === undefined).toBe(isWhole)
    }),
  )
})

test('[G-04] [C-10] the size of a value is that of its JSON, or more than was asked for', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(300), (value, bytesMax) => {
      const json = plain(value)
      const bytes = bytesOf(json)
      const size = sizeWithin(json, bytesMax)
      // A comma is counted for every field, so that one may be too many.
      const isRight = size === undefined ? bytes + commas(json) > bytesMax : size >= bytes && size <= bytesMax
      expect(isRight).toBe(true)
    }),
  )
})

function commas(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0
  const parts: readonly Json[] = Array.isArray(value) ? value : Object.values(value).map((part) => part ?? null)
  return (parts.length === 0 ? 0 : 1) + parts.reduce<number>((sum, part) => sum + commas(part), 0)
}

/** As it comes from a storage. */
function plain<T extends Json>(value: unknown): T {
  return JSON.parse(JSON.stringify(value)) as T
}
