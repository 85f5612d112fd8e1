import { describe, expect, test } from 'vitest'
import { KINDS, markOf, markText, mustBeOwn, mustNotBeTransferred, QUEUES } from './transfer.ts'
import type { TransferMark } from './transfer.ts'

const mark: TransferMark = {
  state: 'moving',
  move: 'm-1',
  run: 'r-1',
  other: 'redis://host',
  since: '2026-01-31T12:00:00Z',
}

describe('marks of a move', () => {
  test.for([
    ['moving', /being moved to redis:\/\/host.*--unmark/],
    ['moved', /was moved to redis:\/\/host.*set STORAGE_URL/],
    ['receiving', /only a part.*from redis:\/\/host/],
  ] as const)('[G-01] nobody works on a storage that is marked as %s', ([state, message]) => {
    expect(() => mustNotBeTransferred({ ...mark, state })).toThrow(message)
    expect(() => mustNotBeTransferred({ ...mark, state })).toThrow(
      expect.objectContaining({ code: 'INVALID_CONFIGURATION', details: { move: 'm-1', state } }),
    )
  })

  test('[G-01] a storage without a mark, or one that a move has filled, can be worked on', () => {
    expect(() => mustNotBeTransferred(undefined)).not.toThrow()
    expect(() => mustNotBeTransferred({ ...mark, state: 'received' })).not.toThrow()
  })

  test('[G-01] only the newest run of a move writes', () => {
    expect(() => mustBeOwn(mark, { ...mark, progress: 'further' })).not.toThrow()
    for (const other of [undefined, { ...mark, run: 'r-2' }, { ...mark, state: 'received' as const }]) {
      expect(() => mustBeOwn(other, mark)).toThrow(/taken over this transfer/)
    }
  })

  test('[G-01] a mark is kept as text', () => {
    expect(markOf(markText(mark))).toEqual(mark)
    expect([markOf(null), markOf(undefined)]).toEqual([undefined, undefined])
  })
})

test('[G-01] all kinds and queues are known by name, in order', () => {
  expect([...KINDS]).toEqual([...KINDS].sort())
  expect([...QUEUES]).toEqual(['events', 'firings', 'leaders', 'mail', 'outbox', 'signals', 'tasks', 'timers', 'turns'])
  expect(KINDS).toContain('job')
})
