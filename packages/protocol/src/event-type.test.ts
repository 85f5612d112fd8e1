import { expect, test } from 'vitest'
import { z } from 'zod'
import { eventType, isEventType, isTopic } from './event-type.ts'

test('[B-12] a topic is names joined by dots', () => {
  for (const topic of ['paid', 'order.paid', 'a-b.c_d.1']) expect(isTopic(topic)).toBe(true)
  for (const topic of ['', '.', 'a.', '.a', 'a..b', 'a b', 'ü', 'a/b', 'x'.repeat(201), 5, undefined]) {
    expect(isTopic(topic)).toBe(false)
  }
})

test('[B-12] an event is declared once, and a wrong topic is refused', () => {
  const paid = eventType('order.paid', z.object({ sum: z.number() }))
  expect(paid).toMatchObject({ kind: 'event', topic: 'order.paid' })
  expect(isEventType(paid)).toBe(true)
  for (const other of [
    null,
    'order.paid',
    {},
    { kind: 'event' },
    { kind: 'event', topic: '.' },
    { kind: 'event', topic: 'a' },
  ]) {
    expect(isEventType(other)).toBe(false)
  }
  expect(() => eventType('order paid', z.object({}))).toThrow('"order paid" is not a topic')
})
