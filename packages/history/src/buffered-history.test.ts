import { expect, test } from 'vitest'
import { BufferedHistory } from './buffered-history.ts'
import { BreakableStore, HandClock, KEEP, anEvent, recordingLog, until } from './history.fixture.ts'

function make(bufferMax = 100) {
  const store = new BreakableStore()
  const clock = new HandClock()
  const log = recordingLog()
  return { store, clock, log, history: new BufferedHistory({ store, clock, log, retention: KEEP, bufferMax }) }
}

const namesOf = (store: BreakableStore): readonly string[] => store.written.map(({ event }) => event)

test('[G-04] [J-22] to append costs nothing but the call; a close writes everything that was appended', async () => {
  const { store, history } = make()
  history.append([anEvent({ event: 'a' }), anEvent({ event: 'b' })])
  history.append([anEvent({ event: 'c' })])
  expect(store.written).toEqual([])
  await history.close()
  expect(namesOf(store)).toEqual(['a', 'b', 'c'])
  expect(store.hasClosed).toBe(true)
  await history.close()
})

test('[G-04] what does not fit into the buffer is counted and told, and the rest is written', async () => {
  const { store, history, log } = make(3)
  history.append(Array.from({ length: 5 }, () => anEvent()))
  history.append([anEvent()])
  expect(history.status).toEqual({ isAway: false, waiting: 3, dropped: 3 })
  // Logged once, not once per event.
  expect(log.errors).toHaveLength(1)
  await history.flush()
  expect(store.written).toHaveLength(3)
  history.append([anEvent()])
  await history.flush()
  expect(store.written).toHaveLength(4)
})

test('[C-10] the buffer is bounded in bytes as well as in events, and empty again once they are written', async () => {
  const store = new BreakableStore()
  const options = { store, clock: new HandClock(), log: recordingLog(), retention: KEEP, bufferBytesMax: 100_000 }
  const history = new BufferedHistory(options)
  const large = anEvent({ snapshot: { text: 'x'.repeat(15_000) } })
  history.append([large, large, large, large, large, anEvent()])
  expect(history.status).toEqual({ isAway: false, waiting: 4, dropped: 2 })
  await history.flush()
  history.append([large, large, large, anEvent()])
  expect(history.status).toEqual({ isAway: false, waiting: 4, dropped: 2 })
  await history.close()
})

test('[G-04] while the database is away its events wait, and are written once it is back', async () => {
  const { store, history, log } = make()
  store.isBroken = true
  history.append([anEvent({ event: 'a' })])
  await until(() => store.tries > 5)
  history.append([anEvent({ event: 'b' })])
  expect(history.status).toEqual({ isAway: true, waiting: 2, dropped: 0 })
  expect(log.errors[0]).toMatchObject({
    message: 'the history cannot be written, and waits',
    fields: { reason: 'the disk is full' },
  })
  store.isBroken = false
  await until(() => !history.status.isAway)
  await history.flush()
  expect(namesOf(store)).toEqual(['a', 'b'])
  // The number identifies the batch, so that a batch that was written although its reply was lost is not written again.
  expect(store.batches).toEqual([1, 2])
})

test('[G-04] a database that is away keeps nobody who reads, and its loss is counted once the buffer is full', async () => {
  const { store, history, log } = make(10)
  store.isBroken = true
  history.append(Array.from({ length: 8 }, () => anEvent()))
  await history.flush()
  expect(await history.ofJob('job-1', { limit: 1 })).toEqual([])
  history.append(Array.from({ length: 8 }, () => anEvent()))
  expect(history.status).toMatchObject({ isAway: true, waiting: 10, dropped: 6 })
  await history.close()
  expect(history.status).toEqual({ isAway: true, waiting: 0, dropped: 16 })
  expect(log.errors.at(-1)).toMatchObject({ message: 'history was lost', fields: { events: 16 } })
})

test('[J-22] a close waits for a database that comes back in time', async () => {
  const { store, history } = make()
  store.isBroken = true
  history.append([anEvent()])
  await until(() => store.tries > 2)
  const closing = history.close()
  const { tries } = store
  await until(() => store.tries > tries + 2)
  store.isBroken = false
  await closing
  expect([store.written.length, history.status.dropped]).toEqual([1, 0])
})

test('[G-04] an event that the database does not take costs itself alone', async () => {
  const { store, history, log } = make()
  store.refuses = 'bad'
  const names = ['a', 'b', 'bad', 'c', 'd', 'bad', 'e']
  history.append(names.map((event) => anEvent({ event })))
  await history.flush()
  expect(namesOf(store)).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect(history.status.dropped).toBe(2)
  expect(log.errors[0]).toMatchObject({ message: 'history was lost', fields: { reason: 'I do not like it' } })
  store.isWholeRefused = true
  history.append(names.map((event) => anEvent({ event })))
  await history.flush()
  expect([namesOf(store).length, history.status.dropped]).toEqual([5, 9])
})

test('[G-04] after a close events are counted as lost', async () => {
  const { store, history } = make()
  await history.close()
  history.append([anEvent()])
  expect([history.status.dropped, store.written]).toEqual([1, []])
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

test('[G-05] what is beyond the bounds goes in pieces, every minute, whether events come or not', async () => {
  const { store, history, clock } = make()
  store.beyond = 2
  await history.start()
  await until(() => store.trims === 3)
  clock.advance(30_000)
  store.beyond = 1
  clock.advance(30_000)
  await until(() => store.trims === 5)
  expect(store.beyond).toBe(0)
  await history.close()
})

test('[G-05] on a busy server it goes sooner, and a database that is away is asked again', async () => {
  const { store, history, clock, log } = make(100_000)
  await history.start()
  await until(() => store.trims === 1)
  store.isBroken = true
  clock.advance(60_000)
  await until(() => store.trims === 2)
  await until(() => log.errors.length > 0)
  expect(log.errors).toMatchObject([
    {
      message: 'old history could not be removed; it is tried again in a minute',
      fields: { reason: 'the disk is full' },
    },
  ])
  store.isBroken = false
  history.append(Array.from({ length: 26_000 }, () => anEvent()))
  await until(() => store.trims === 3)
  await history.close()
})

test('[G-04] settings that can never work are refused at the start', async () => {
  const { store, history } = make()
  store.isBroken = true
  await expect(history.start()).rejects.toThrow('it cannot be opened')
  store.isBroken = false
  await history.close()
  await history.start()
  expect(store.trims).toBe(0)
})
