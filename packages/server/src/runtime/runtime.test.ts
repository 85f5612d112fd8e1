import { getEventListeners } from 'node:events'
import { shardSuffix } from '@impresario/core'
import { createTimestamp } from '@impresario/protocol'
import { describe, expect, test } from 'vitest'
import { createClock } from './clock.ts'
import { createLog } from './log.ts'
import type { LogOptions } from './log.ts'
import { createRandom } from './random.ts'

describe('clock', () => {
  test('[I-05] time is whole milliseconds and never goes back', () => {
    const clock = createClock()
    let last = 0
    for (let round = 0; round < 1_000; round += 1) {
      const now = clock.now()
      expect(now).toBeGreaterThanOrEqual(last)
      expect(Number.isInteger(now)).toBe(true)
      last = now
    }
    expect(Math.abs(last - Date.now())).toBeLessThan(60_000)
  })

  test('[I-05] it follows the wall clock forward at once, and back little by little', () => {
    let wall = 1_000_000
    let passed = 0
    const clock = createClock({ wall: () => wall, passed: () => passed })
    const pass = (ms: number): void => {
      wall += ms
      passed += ms
    }
    pass(10)
    expect(clock.now()).toBe(1_000_010)
    // A machine that slept for an hour: the clock of the processor stood still.
    wall += 3_600_000
    expect(clock.now()).toBe(4_600_010)
    expect(clock.steady?.()).toBe(1_000_010)
    // Set back by ten minutes, which are made good in a hundred.
    wall -= 600_000
    expect(clock.now()).toBe(4_600_010)
    pass(10_000)
    expect(clock.now()).toBe(4_609_010)
    for (let minute = 0; minute < 100; minute += 1) {
      pass(60_000)
      clock.now()
    }
    expect(Math.abs(clock.now() - wall)).toBeLessThanOrEqual(1_000)
    expect(clock.steady?.()).toBe(1_000_010 + 10_000 + 6_000_000)
    // Less than a second is left alone: the two have not the same pace.
    const before = clock.now()
    wall += 300
    pass(1)
    expect(clock.now() - before).toBeLessThanOrEqual(2)
  })

  test('[I-07] a sleep ends at once when it is aborted, and keeps no listener', async () => {
    const clock = createClock()
    const abort = new AbortController()
    const long = clock.sleep(1e12, abort.signal)
    abort.abort()
    await long
    await clock.sleep(1e12, abort.signal)
    await clock.sleep(0, abort.signal)
    await clock.sleep(1, new AbortController().signal)
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0)
  })
})

test('[C-08] ids are unique, sort by their age, and look like UUIDs of version 7', () => {
  let now = 1_700_000_000_000
  const random = createRandom(() => now)
  const ids = Array.from({ length: 20_000 }, (_, index) => {
    if (index % 7_000 === 0) now += 1
    return random.id()
  })
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  const shape = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/
  expect(ids.every((id) => shape.test(id))).toBe(true)
  expect(Number.parseInt(ids[0]?.replace('-', '').slice(0, 12) ?? '', 16)).toBe(1_700_000_000_001)
  for (let round = 0; round < 2_000; round += 1) {
    const chance = random.next()
    expect(chance >= 0 && chance < 1).toBe(true)
  }
})

test('[G-02] an id near another one sorts as any, and ends with the digits of that one', () => {
  const random = createRandom(() => 1_700_000_000_000)
  const ids = Array.from({ length: 100 }, (_, index) => random.id(index % 2 === 0 ? 'ann/order.1' : undefined))
  expect(ids.toSorted()).toEqual(ids)
  const digits = shardSuffix('ann/order.1')
  expect(ids.filter((id) => id.endsWith(digits)).length).toBeGreaterThanOrEqual(50)
})

describe('log', () => {
  const logged = (options: Partial<LogOptions>, act: (log: ReturnType<typeof createLog>) => void): string => {
    let text = ''
    const destination = {
      write: (line: string) => {
        text += line
      },
    }
    act(createLog({ level: 'info', format: 'json', timeZone: 'UTC', instance: 'one', destination, ...options }))
    return text
  }

  test('[I-05] a line is JSON with time, level, message, instance and the ids', () => {
    const text = logged({ timeZone: 'Asia/Kolkata' }, (log) =>
      log.warn('something', { job_id: 'j', task_id: 't', worker_id: 'w' }),
    )
    const { time, ...rest } = JSON.parse(text) as Record<string, unknown>
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+05:30$/)
    expect(rest).toEqual({
      level: 'warn',
      instance: 'one',
      msg: 'something',
      job_id: 'j',
      task_id: 't',
      worker_id: 'w',
    })
  })

  test('[I-05] secrets are hidden, lower levels are left out, and people can read it too', () => {
    expect(logged({}, (log) => log.info('m', { token: 'abc', headers: { authorization: 'abc' } }))).not.toContain('abc')
    expect(logged({}, (log) => log.debug('m'))).toBe('')
    expect(logged({ format: 'text' }, (log) => log.error('it broke', { job_id: 'j', n: 1 }))).toMatch(
      /^\S+Z ERROR it broke job_id=j n=1\n$/,
    )
  })

  test('[I-05] [H-08] no text from outside begins a line of its own or steers the terminal', () => {
    const evil = 'a\n2026-01-01T00:00:00.000Z INFO  forged\r\u001B[2J\u2028b\u202Ec'
    const text = logged({ format: 'text' }, (log) => log.error(evil, { worker_id: evil, list: [evil], stack: evil }))
    expect(text.trimEnd().split(/[\n\r\u2028]/)).toHaveLength(2)
    expect(text.trimEnd().split('\n')[1]).toMatch(/^ {4}2026/)
    expect(['\r', '\u001B', '\u2028', '\u202E'].filter((char) => text.includes(char))).toEqual([])
    expect(text).toContain(String.raw`worker_id=a\n2026`)
    expect(
      logged({}, (log) => log.error(evil, { worker_id: evil }))
        .trimEnd()
        .split('\n'),
    ).toHaveLength(1)
  })

  test('[I-05] the time is written in the zone, over the change of summer time too', () => {
    const berlin = createTimestamp('Europe/Berlin')
    expect(berlin(Date.UTC(2026, 2, 29, 0, 59, 59, 7))).toBe('2026-03-29T01:59:59.007+01:00')
    expect(berlin(Date.UTC(2026, 2, 29, 1, 0, 0))).toBe('2026-03-29T03:00:00.000+02:00')
    expect(createTimestamp('UTC')(0)).toBe('1970-01-01T00:00:00.000Z')
  })
})
