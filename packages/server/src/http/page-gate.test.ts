import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { pageBounds } from '../limits/admission-service.ts'
import { PageGate } from './page-gate.ts'

const anAnswer = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()))

function aGate(pagesMax: number) {
  const readers = {
    bytes: 0,
    isBusy: false,
    cut: 0,
    makeRoom: () => {
      readers.bytes -= readers.cut
    },
  }
  return {
    readers,
    gate: new PageGate({ pagesMax, unreadBytesMax: 100, waitMs: 5_000, yieldMs: 1_000 }, readers, () => readers.isBusy),
  }
}

test('[C-10] pages are made a few at a time, in the order in which they were asked for', async () => {
  const { gate } = aGate(2)
  const answers = Array.from({ length: 4 }, anAnswer)
  const order: number[] = []
  const entries = answers.map((raw, index) => {
    const entered = gate.enter(raw)
    return entered === undefined ? order.push(index) : entered.then(() => order.push(index))
  })
  expect(order).toEqual([0, 1])
  const [first, second] = answers
  if (first === undefined || second === undefined) throw new Error('There are four.')
  gate.leave(first)
  gate.leave(first)
  await entries[2]
  expect(order).toEqual([0, 1, 2])
  // Its client is gone.
  second.emit('close')
  await entries[3]
  expect(order).toEqual([0, 1, 2, 3])
})

test('[C-10] who waits too long for a page is refused, and who is gone does not hold up others', async () => {
  const { gate } = aGate(1)
  const [one, gone, late] = [anAnswer(), anAnswer(), anAnswer()]
  expect(gate.enter(one, 0)).toBeUndefined()
  const leaving = gate.enter(gone, 0)
  const waiting = gate.enter(late, 1_000)
  gone.destroy()
  gate.look(10)
  await expect(leaving).rejects.toMatchObject({ code: 'OVERLOADED' })
  gate.look(5_999)
  gate.look(6_000)
  await expect(waiting).rejects.toMatchObject({ code: 'OVERLOADED', status: 503, details: { retry_after_s: 2 } })
})

test('[C-10] no page is begun while too much waits for those who do not read, and they are cut off for it', async () => {
  const { gate, readers } = aGate(9)
  readers.bytes = 500
  readers.cut = 10
  const waiting = gate.enter(anAnswer(), 0)
  expect(waiting).toBeInstanceOf(Promise)
  readers.cut = 450
  gate.look(100)
  await waiting
  expect(readers.bytes).toBeLessThan(100)
})

test('[I-09] while the loop is late a page waits for a second, and then comes all the same', async () => {
  const { gate, readers } = aGate(9)
  readers.isBusy = true
  const order: string[] = []
  const first = gate.enter(anAnswer(), 0)?.then(() => order.push('first'))
  const second = gate.enter(anAnswer(), 900)?.then(() => order.push('second'))
  gate.look(999)
  gate.look(1_000)
  await first
  expect(order).toEqual(['first'])
  readers.isBusy = false
  gate.look(1_100)
  await second
  expect(order).toEqual(['first', 'second'])
})

test('[C-10] the bounds of pages follow the heap', () => {
  const mb = 1_048_576
  const bounds = [64, 256, 2_048, 16_384].map((heap) => pageBounds(heap * mb))
  expect(bounds.map(({ pagesMax }) => pagesMax)).toEqual([2, 2, 8, 16])
  expect(bounds.map(({ unreadBytesMax }) => unreadBytesMax / mb)).toEqual([16, 32, 128, 128])
})
