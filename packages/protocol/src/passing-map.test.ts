import { expect, test } from 'vitest'
import fc from 'fast-check'
import { PassingMap } from './passing-map.ts'

const KEY = fc.integer({ min: 0, max: 12 })
const COMMAND = fc.record({ act: fc.constantFrom('set' as const, 'delete' as const, 'clear' as const), key: KEY })
interface Command {
  readonly act: 'set' | 'delete' | 'clear'
  readonly key: number
}

/** What the command gives back. */
function carriedOut(map: PassingMap<number, number> | Map<number, number>, command: Command, value: number): unknown {
  if (command.act === 'set') return map.set(command.key, value).size
  return command.act === 'delete' ? map.delete(command.key) : map.clear()
}

test('[G-01] a map of what comes and goes has what a map has, in the same order', () => {
  fc.assert(
    fc.property(fc.array(COMMAND, { maxLength: 300 }), (commands) => {
      const own = new PassingMap<number, number>()
      const model = new Map<number, number>()
      for (const [value, command] of commands.entries()) {
        expect(carriedOut(own, command, value)).toBe(carriedOut(model, command, value))
        expect([own.size, own.has(command.key), own.get(command.key)]).toEqual([
          model.size,
          model.has(command.key),
          model.get(command.key),
        ])
        expect([...own]).toEqual([...model])
      }
      const visited: [number, number][] = []
      // oxlint-disable-next-line unicorn/no-array-for-each -- it is a part of what a map has.
      own.forEach((value, key) => visited.push([key, value]))
      expect(visited).toEqual([...model])
      expect([[...own.keys()], [...own.values()]]).toEqual([[...model.keys()], [...model.values()]])
    }),
  )
})

test('[G-01] everything is visited although all of it is deleted meanwhile', () => {
  const own = new PassingMap<number, true>()
  for (let key = 0; key < 100; key += 1) own.set(key, true)
  const visited: number[] = []
  for (const key of own.keys()) {
    visited.push(key)
    own.delete(key)
  }
  expect(visited).toHaveLength(100)
  expect(own.size).toBe(0)
})
