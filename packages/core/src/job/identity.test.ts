import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  besideJobId,
  childJobId,
  deliveryId,
  endedId,
  jobOfItem,
  orderId,
  parseDeliveryId,
  shownJobId,
  taskId,
  timerId,
  turnId,
} from './identity.ts'

test('[C-09] every item of a job has one name', () => {
  expect(turnId('j')).toBe('j')
  expect(taskId('j', 2, '0')).toBe('j.2.0')
  expect(timerId('j', 'life')).toBe('j.life')
  expect(['j', 'j.2.0', 'j.life', 'j-2-0.1.a.b'].map(jobOfItem)).toEqual(['j', 'j', 'j', 'j-2-0'])
  expect(childJobId('j', 2, '0')).toBe('j-2-0')
  expect(orderId('j-2-0')).toBe('j-2-0.order')
  expect(endedId('j-2-0')).toBe('j-2-0.ended')
})

const count = fc.integer({ min: 0, max: 999_999_999 })
const refs = fc.record({
  jobId: fc.oneof(fc.uuid(), fc.constantFrom('a', 'a.1.2', 'j-1-0', '__proto__')),
  visit: count,
  branch: fc.oneof(fc.nat().map(String), fc.constantFrom('__proto__', 'a-b', 'constructor')),
  attempt: count,
  token: fc.maxSafeNat(),
})

test('[C-09] a delivery is read back as it was written', () => {
  fc.assert(
    fc.property(refs, (ref) => {
      expect(parseDeliveryId(deliveryId(ref))).toEqual(ref)
    }),
  )
})

test('[C-09] a text that is no delivery is refused', () => {
  for (const text of [
    '',
    'j',
    'j.1.0',
    'j.1.0.1',
    '.1.0.1.a',
    'j.x.0.1.a',
    'j.1..1.a',
    'j.1.0.1.',
    'j.1.0.1.A',
    'j.1.0.1.a\n',
  ]) {
    expect(parseDeliveryId(text)).toBeUndefined()
  }
})

test('[C-09] another spelling of a delivery is refused', () => {
  expect(parseDeliveryId('j.1.0.1.a')).toEqual({ jobId: 'j', visit: 1, branch: '0', attempt: 1, token: 10 })
  for (const text of ['j.01.0.1.a', 'j.1.0.01.a', 'j.1.0.1.0a', 'j.1.0.1.zzzzzzzzzzzz']) {
    expect(parseDeliveryId(text)).toBeUndefined()
  }
})

test('[C-09] whatever is read as a delivery is spelled like it', () => {
  const almost = fc.stringMatching(/^[a.]{0,3}\.\d{1,3}\.[\w-]{1,3}\.\d{1,3}\.[0-9a-zA-Z]{1,3}$/)
  fc.assert(
    fc.property(fc.oneof(almost, fc.string()), (text) => {
      const ref = parseDeliveryId(text)
      expect(ref === undefined ? text : deliveryId(ref)).toBe(text)
    }),
  )
})

test('[H-08] a job beside another of the same id is shown under the id that was asked for, and so are its children', () => {
  const id = '01926e0c-7f00-7abc-8def-0123456789ab'
  const beside = besideJobId(id, '1a2b')
  expect(beside).toBe(`${id}_1a2b`)
  expect(shownJobId(beside)).toBe(id)
  const child = childJobId(beside, 2, 'a_1')
  expect(shownJobId(child)).toBe(`${id}-2-a_1`)
  expect(besideJobId(shownJobId(child), '1a2b')).toBe(child)
  for (const other of ['j', 'a_b', `${id}-2-a_1`, `x${id}_1a2b`]) expect(shownJobId(other)).toBe(other)
  for (const other of ['j', beside, 'a-1-b']) expect(besideJobId(other, 'zz')).toBe(other)
})
