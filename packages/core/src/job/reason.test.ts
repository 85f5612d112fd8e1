import { expect, test } from 'vitest'
import { waitReason } from './reason.ts'
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
