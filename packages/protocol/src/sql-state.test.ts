import { expect, test } from 'vitest'
import { sqlStateOf } from './sql-state.ts'

test('[G-03] errors of PostgreSQL are known by their five characters, those of the connection are not', () => {
  const named = (code: unknown): Error => Object.assign(new Error('x'), { code })
  expect(['40001', '57P01', 'EPIPE', 'ECONNRESET', 7].map((code) => sqlStateOf(named(code)))).toEqual([
    '40001',
    '57P01',
    undefined,
    undefined,
    undefined,
  ])
  expect([sqlStateOf(new Error('x')), sqlStateOf('40001')]).toEqual([undefined, undefined])
})
