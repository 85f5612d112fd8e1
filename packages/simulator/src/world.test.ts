import { expect, test } from 'vitest'
import type { Chance } from './chance.ts'
import { Node, clockOf } from './node.ts'
import { World } from './world.ts'

test('[C-05] things happen in the order of time, and at one time in the order in which they were planned', async () => {
  const world = new World(1)
  const seen: string[] = []
  world.after(20, () => seen.push('c'))
  world.after(10, () => seen.push('a'))
  world.after(10, () => seen.push('b'))
  world.after(15, () => seen.push('never')).isCancelled = true
  await world.run(() => false)
  expect([seen, world.age, world.steps]).toEqual([['a', 'b', 'c'], 20, 3])
})

test('[C-05] whatever a step wakes has run dry before the next step', async () => {
  const world = new World(1)
  const seen: string[] = []
  world.after(1, () => {
    void (async () => {
      for (let turns = 0; turns < 100; turns += 1) await Promise.resolve()
      seen.push('woken')
    })()
  })
  world.after(1, () => seen.push('next'))
  await world.run(() => false)
  expect(seen).toEqual(['woken', 'next'])
})

test('[C-05] streams of chance do not disturb each other', () => {
  const draw = (chance: Chance): readonly number[] => Array.from({ length: 5 }, () => chance.between(1, 1_000))
  const alone = draw(new World(5).chance('a'))
  const world = new World(5)
  draw(world.chance('b'))
  expect(draw(world.chance('a'))).toEqual(alone)
  expect(draw(new World(6).chance('a'))).not.toEqual(alone)
})

test('[C-05] a process that is paused feels no time, and one that is dead never wakes', async () => {
  const world = new World(1)
  const node = new Node('n', world)
  const clock = clockOf(node)
  const signal = new AbortController().signal
  const woken: number[] = []
  node.pause(100)
  void clock.sleep(10, signal).then(() => woken.push(world.age))
  void clock.sleep(200, signal).then(() => woken.push(world.age))
  world.after(150, () => node.die())
  await world.run(() => false)
  expect(woken).toEqual([100])
})
