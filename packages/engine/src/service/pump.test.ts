import { expect, test } from 'vitest'
import { Pump } from './pump.ts'
import { ListLog, VirtualClock, settled } from '../stage.fixture.ts'

type Round = () => Promise<{ worked: number; nextInMs: number | undefined }>

function aPump(round: Round) {
  const clock = new VirtualClock()
  const log = new ListLog()
  return { clock, log, pump: new Pump({ name: 'pump', clock, log, idleMs: 1_000, round }) }
}

/** A round that ends when the test says so. */
function heldRounds() {
  let begun = 0
  let running = 0
  let runningMax = 0
  let waiting: (() => void)[] = []
  const round: Round = async () => {
    begun += 1
    running += 1
    runningMax = Math.max(runningMax, running)
    await new Promise<void>((resolve) => {
      waiting.push(resolve)
    })
    running -= 1
    return { worked: 1, nextInMs: undefined }
  }
  const release = (): void => {
    for (const resolve of waiting) resolve()
    waiting = []
  }
  return { round, release, seen: () => ({ begun, running, runningMax }) }
}

function countedRounds(nextInMs?: number) {
  let rounds = 0
  const round: Round = async () => {
    rounds += 1
    return { worked: 0, nextInMs }
  }
  return { round, count: () => rounds }
}

test('rounds follow one another after the span that they name, at the latest after the idle time', async () => {
  const soon = countedRounds(100)
  const late = countedRounds(60_000)
  const first = aPump(soon.round)
  const second = aPump(late.round)
  await Promise.all([first.pump.start(), second.pump.start()])
  await Promise.all([first.clock.advance(1_000), second.clock.advance(1_000)])
  expect([soon.count(), late.count()]).toEqual([11, 2])
  await Promise.all([first.pump.stop(), second.pump.stop()])
})

test('start and stop are safe to call twice, and stop before start', async () => {
  const { round, count } = countedRounds()
  const { pump, clock } = aPump(round)
  await pump.stop()
  await pump.stop()
  expect(count()).toBe(0)
  await pump.start()
  await pump.start()
  await settled()
  expect(count()).toBe(1)
  await pump.stop()
  await pump.stop()
  await clock.advance(10_000)
  expect([count(), clock.sleeping]).toEqual([1, 0])
  await pump.start()
  await settled()
  expect(count()).toBe(2)
  await pump.stop()
})

test('stop waits for the round that runs', async () => {
  const held = heldRounds()
  const { pump } = aPump(held.round)
  await pump.start()
  let isStopped = false
  const stopping = pump.stop().then(() => {
    isStopped = true
  })
  await settled()
  expect(isStopped).toBe(false)
  held.release()
  await stopping
  expect(held.seen()).toEqual({ begun: 1, running: 0, runningMax: 1 })
})

test('a start that follows a stop counts, also while the last round has not ended', async () => {
  const held = heldRounds()
  const { pump } = aPump(held.round)
  await pump.start()
  const stops = [pump.stop(), pump.stop()]
  await pump.start()
  await settled()
  expect(held.seen().begun).toBe(1)
  held.release()
  await Promise.all(stops)
  await settled()
  expect(held.seen()).toEqual({ begun: 2, running: 1, runningMax: 1 })
  const last = pump.stop()
  held.release()
  await last
  await settled()
  expect(held.seen()).toEqual({ begun: 2, running: 0, runningMax: 1 })
})

test('a wake ends the sleep; a wake during a round makes the next one follow at once', async () => {
  const held = heldRounds()
  const { pump, clock } = aPump(held.round)
  await pump.start()
  pump.wake()
  pump.wake()
  held.release()
  await settled()
  expect([held.seen().begun, clock.sleeping]).toEqual([2, 0])
  held.release()
  await settled()
  expect([held.seen().begun, clock.sleeping]).toEqual([2, 1])
  pump.wake()
  await settled()
  expect(held.seen()).toEqual({ begun: 3, running: 1, runningMax: 1 })
  const stopping = pump.stop()
  held.release()
  await stopping
})

test('a round that fails is followed by a pause, whoever wakes the pump meanwhile', async () => {
  let rounds = 0
  const { pump, clock, log } = aPump(async () => {
    rounds += 1
    pump.wake()
    throw new Error('The disk is gone.')
  })
  await pump.start()
  for (let wakes = 0; wakes < 10; wakes += 1) {
    pump.wake()
    await settled()
  }
  expect(rounds).toBe(1)
  await clock.advance(499)
  expect(rounds).toBe(1)
  await clock.advance(1)
  expect(rounds).toBe(2)
  expect(log.errors).toEqual(['pump: a round failed', 'pump: a round failed'])
  // It can be stopped during the pause.
  await pump.stop()
  expect(clock.sleeping).toBe(0)
})

test('a tick is one round, started or not', async () => {
  const { round, count } = countedRounds()
  const { pump } = aPump(round)
  expect(await pump.tick()).toEqual({ worked: 0 })
  expect(count()).toBe(1)
})

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
  'fifty at once start and stop it: the last word counts (%i)',
  async (seed) => {
    let running = 0
    let runningMax = 0
    const { pump, clock } = aPump(async () => {
      running += 1
      runningMax = Math.max(runningMax, running)
      await Promise.resolve()
      running -= 1
      return { worked: 0, nextInMs: 10 }
    })
    let state = seed
    const both = Array.from({ length: 50 }, async () => {
      state = (state * 48_271) % 2_147_483_647
      for (let turns = state % 7; turns > 0; turns -= 1) await Promise.resolve()
      await (state % 2 === 0 ? pump.start() : pump.stop())
    })
    await Promise.all(both)
    await pump.stop()
    expect([running, clock.sleeping]).toEqual([0, 0])
    await pump.start()
    await settled()
    expect([runningMax, clock.sleeping]).toEqual([1, 1])
    await pump.stop()
    expect([running, clock.sleeping]).toEqual([0, 0])
  },
)
