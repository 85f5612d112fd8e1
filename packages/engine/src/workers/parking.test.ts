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
