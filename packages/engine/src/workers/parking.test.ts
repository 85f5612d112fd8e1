import { expect, test } from 'vitest'
import { Parking } from './parking.ts'
import { NEVER, VirtualClock, settled } from '../stage.fixture.ts'

test('[E-02] a wake between taking a place and waiting is not lost', async () => {
  const clock = new VirtualClock()
  const parking = new Parking(clock)
  const ticket = parking.enter('w')
  expect(parking.wake('w')).toBe(true)
  let isOver = false
  void ticket.wait(30_000, NEVER).then(() => {
    isOver = true
  })
  await settled()
  expect([isOver, clock.sleeping, parking.size]).toEqual([true, 0, 0])
})

test('[E-02] a wake reaches every poll of its worker and no other', async () => {
  const clock = new VirtualClock()
  const parking = new Parking(clock)
  const over: string[] = []
  for (const id of ['w', 'w', 'v']) {
    void parking
      .enter(id)
      .wait(30_000, NEVER)
      .then(() => over.push(id))
  }
  expect([parking.wake('nobody'), parking.has('v'), parking.size]).toEqual([false, true, 3])
  parking.wake('w')
  await settled()
  expect([over, parking.has('w'), parking.size]).toEqual([['w', 'w'], false, 1])
  parking.wakeAll()
  await settled()
  expect([over.length, parking.size, clock.sleeping]).toEqual([3, 0, 0])
})

test('[E-02] a place can be left twice, and does not take that of a later poll along', async () => {
  const parking = new Parking(new VirtualClock())
  const first = parking.enter('w')
  first.leave()
  parking.enter('w')
  first.leave()
  expect(parking.size).toBe(1)
})

test('[E-02] long waits that end in the same tenth of a second share one sleep, short ones end on time', async () => {
  const clock = new VirtualClock()
  const parking = new Parking(clock)
  const ends: number[] = []
  const began = clock.now()
  const wait = (ms: number): void => {
    void parking
      .enter('w')
      .wait(ms, NEVER)
      .then(() => ends.push(clock.now() - began))
  }
  for (const ms of [30_000, 29_950, 29_910, 29_890, 37]) wait(ms)
  await settled()
  expect(clock.sleeping).toBe(3)
  await clock.advance(30_000)
  expect(ends).toEqual([37, 29_900, 30_000, 30_000, 30_000])
  expect([parking.size, clock.sleeping]).toEqual([0, 0])
})

test('[E-02] a poll that goes early leaves the sleep to the others, and the last one ends it', async () => {
  const clock = new VirtualClock()
  const parking = new Parking(clock)
  const caller = new AbortController()
  let over = 0
  const count = (): void => {
    over += 1
  }
  void parking.enter('w').wait(30_000, caller.signal).then(count)
  void parking.enter('v').wait(30_000, NEVER).then(count)
  caller.abort()
  await settled()
  expect([over, parking.has('w'), parking.has('v'), clock.sleeping]).toEqual([1, false, true, 1])
  parking.wake('v')
  await settled()
  expect([over, parking.size, clock.sleeping]).toEqual([2, 0, 0])
})
