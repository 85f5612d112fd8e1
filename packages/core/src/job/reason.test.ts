import { expect, test } from 'vitest'
import { waitReason, waitReasons } from './reason.ts'
import {
  aChild,
  approval,
  aTask,
  awaits,
  cancels,
  child,
  chooses,
  fanOut,
  happens,
  open,
  play,
  reports,
  sleep,
  task,
} from './samples.ts'

const after = (...cues: Parameters<typeof play> extends [unknown, ...infer C] ? C : never): string | undefined =>
  waitReason(play(open(), ...cues).job)

test('[D-05] [B-11] a job says what it stands still for', () => {
  expect(after()).toBeUndefined()
  expect(after(cancels)).toBeUndefined()
  expect(after(chooses(sleep({ afterMs: 60_000 })))).toBe(
    'It sleeps until 1970-01-01T00:01:02Z, then goes on to "work".',
  )
  expect(after(chooses(awaits('paid')))).toBe('It waits for the event "paid".')
  expect(after(chooses(awaits('paid', {}, { key: 'o1', timeoutMs: 60_000 })))).toBe(
    'It waits for the event "paid" for the key "o1", until 1970-01-01T00:01:02Z.',
  )
  expect(after(chooses(approval({ yes: 'done' })))).toBe('It waits for a person to decide: Is it good?')
  expect(after(chooses(task({})))).toBe('It waits for "render".')
  expect(after(chooses(child({})))).toBe('It waits for "trailer".')
  expect(after(chooses(fanOut(aTask(), aTask(), aChild())), reports('success'))).toBe(
    'It waits for 2 of 3 branches: "render", "trailer".',
  )
  const error = { code: 'BLUEPRINT_GONE', message: 'It is gone.', state: 'start' } as const
  const aside = play(open(), happens({ type: 'stranded', error })).job
  expect(waitReason(aside)).toBe('It is quarantined and waits for a person: It is gone.')
  expect(waitReason({ ...aside, error: undefined })).toContain('no reason is known')
})

test('[D-05] [M-07] what a job stands still for is there as data too', () => {
  const data = (...cues: Parameters<typeof after>) =>
    waitReasons(play(open(), ...cues).job).map(({ code, values }) => ({ code, values }))
  expect(data()).toEqual([])
  expect(data(chooses(sleep({ afterMs: 60_000 })))).toEqual([{ code: 'sleep', values: { until: 62_000, to: 'work' } }])
  expect(data(chooses(awaits('paid')))).toEqual([{ code: 'event', values: { topic: 'paid', key: null, until: null } }])
  expect(data(chooses(task({})))).toEqual([{ code: 'branch', values: { names: ['render'] } }])
  expect(data(chooses(fanOut(aTask(), aTask(), aChild())), reports('success'))).toEqual([
    { code: 'branches', values: { open: 2, all: 3, names: ['render', 'trailer'] } },
  ])
})
