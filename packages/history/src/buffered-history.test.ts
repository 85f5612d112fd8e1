import { expect, test } from 'vitest'
import { BufferedHistory } from './buffered-history.ts'
import { BreakableStore, HandClock, KEEP, anEvent, recordingLog } from './history.fixture.ts'

function make(bufferMax = 100) {
  const store = new BreakableStore()
  const clock = new HandClock()
  const log = recordingLog()
  return { store, clock, log, history: new BufferedHistory({ store, clock, log, retention: KEEP, bufferMax }) }
}

test('[G-04] [J-22] to append costs nothing but the call; a close writes everything that was appended', async () => {
  const { store, history } = make()
  history.append([anEvent({ event: 'a' }), anEvent({ event: 'b' })])
  history.append([anEvent({ event: 'c' })])
  expect(store.written).toEqual([])
  await history.close()
  expect(store.written.map(({ event }) => event)).toEqual(['a', 'b', 'c'])
  expect(store.hasClosed).toBe(true)
  await history.close()
})

test('[G-04] what does not fit into the buffer is counted and told, and the rest is written', async () => {
  const { store, history, log } = make(3)
  history.append(Array.from({ length: 5 }, () => anEvent()))
  history.append([anEvent()])
  expect(history.dropped).toBe(3)
  // Told once, not once for each.
  expect(log.errors).toHaveLength(1)
  await history.flush()
  expect(store.written).toHaveLength(3)
  history.append([anEvent()])
  await history.flush()
  expect(store.written).toHaveLength(4)
})

test('[G-04] a database that refuses is tried again, then its events are given up, and nothing is thrown', async () => {
  const { store, history, log, clock } = make()
  store.isBroken = true
  history.append([anEvent()])
  await history.flush()
  expect([store.tries, history.dropped]).toEqual([3, 1])
  expect(log.errors.map(({ message }) => message)).toContain('history was lost')
  store.isBroken = false
  clock.time += 120_000
  history.append([anEvent({ event: 'later' })])
  await history.flush()
  expect(store.written.map(({ event }) => event)).toEqual(['later'])
})

test('[G-04] after a close events are counted as lost', async () => {
  const { store, history } = make()
  await history.close()
  history.append([anEvent()])
  expect([history.dropped, store.written]).toEqual([1, []])
})

test('[G-04] whoever reads waits for what came before, not for what goes on coming', async () => {
  const { store, history } = make()
  store.onWrite = () => history.append([anEvent({ event: 'more' })])
  history.append([anEvent({ event: 'asked for' })])
  await history.ofJob('job-1', { limit: 1 })
  expect(store.written[0]).toMatchObject({ event: 'asked for' })
  store.onWrite = () => undefined
  await history.close()
  expect(store.written.length).toBeGreaterThan(1)
})

test('[G-05] what is beyond the bounds goes in pieces, with each batch that is written', async () => {
  const { store, history } = make()
  store.beyond = 2
  for (let times = 0; times < 4; times += 1) {
    history.append([anEvent()])
    await history.flush()
  }
  expect([store.trims, store.beyond]).toEqual([3, 0])
  await history.close()
})
