import { expect, test } from 'vitest'
import { TurnRoom } from './turn-room.ts'

test('[C-10] as many turns run as their jobs have room in memory, and always one', () => {
  const room = new TurnRoom(1_000_000)
  expect(room.fitting(32)).toBe(32)
  for (let turn = 0; turn < 32; turn += 1) room.take(turn, 1_000)
  expect(room.fitting(32)).toBe(32)
  for (let turn = 100; turn < 116; turn += 1) room.take(turn, 50_000)
  // What they hold is known by now, and what is left is room for three of their kind.
  expect(room.fitting(32)).toBeLessThan(5)
  for (let turn = 200; turn < 204; turn += 1) room.take(turn, 50_000)
  expect(room.fitting(32)).toBe(0)
  for (let turn = 0; turn < 300; turn += 1) room.leave(turn)
  room.take(1, 9_000_000)
  expect(room.fitting(32)).toBe(0)
  room.leave(1)
  expect(room.fitting(32)).toBe(1)
})
