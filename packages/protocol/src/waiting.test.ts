import { expect, test } from 'vitest'
import { pause, unlessAborted } from './waiting.ts'

test('[I-07] a pause ends with its time, or with its signal, also one that was aborted before', async () => {
  await pause(1)
  const control = new AbortController()
  const paused = pause(1_000_000, control.signal)
  control.abort()
  await paused
  await pause(1_000_000, control.signal)
  expect(control.signal.aborted).toBe(true)
})

test('[I-07] work is given up when its signal aborts, and its result counts before that', async () => {
  const control = new AbortController()
  const reason = (): Error => new Error('stopped')
  expect(await unlessAborted(Promise.resolve(7), control.signal, reason)).toBe(7)
  await expect(unlessAborted(Promise.reject(new Error('own')), control.signal, reason)).rejects.toThrow('own')
  const given = unlessAborted(new Promise<never>(() => undefined), control.signal, reason)
  control.abort()
  await expect(given).rejects.toThrow('stopped')
  await expect(unlessAborted(new Promise<never>(() => undefined), control.signal, reason)).rejects.toThrow('stopped')
})
