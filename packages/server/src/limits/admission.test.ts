import { expect, test } from 'vitest'
import { isImpresarioError } from '@impresario/protocol'
import { Admission } from './admission.ts'
import type { AdmissionBounds } from './admission.ts'
import { admissionBounds } from './admission-service.ts'
import { HeapGauge } from '../runtime/heap-gauge.ts'
import { LoopGauge } from '../runtime/loop-gauge.ts'

function anAdmission(bounds: Partial<AdmissionBounds> = {}) {
  const lines: string[] = []
  const note = (message: string): void => {
    lines.push(message)
  }
  const state = { now: 0, isLate: false, isFull: false }
  const admission = new Admission({
    bounds: { jobBytesMax: 1_000, bodyBytesMax: 1_000, waitMsMax: 1_000, ...bounds },
    now: () => state.now,
    log: { debug: note, info: note, warn: note, error: note },
    loop: state,
    heap: state,
  })
  return { admission, state, lines }
}

/** What a refusal says, or nothing. */
function refusalOf(work: () => unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (!isImpresarioError(error, 'OVERLOADED')) throw error
    return error.details
  }
}

test('[C-10] jobs that are being started are let in by what they hold, and one alone whatever it holds', () => {
  const { admission } = anAdmission()
  const large = admission.enter(5_000)
  expect(refusalOf(() => admission.enter(1))).toEqual({ retry_after_s: 1 })
  large.leave()
  large.leave()
  const passes = [admission.enter(600), admission.enter(400)]
  expect(refusalOf(() => admission.enter(1))).toBeDefined()
  for (const pass of passes) pass.leave()
  expect(admission.jobBytes).toBe(0)
})

test('[C-10] bodies count as they arrive; those that ask for new work have half of the room', () => {
  const { admission } = anAdmission()
  const slow = [admission.enterBody(400, true), admission.enterBody(400, true), admission.enterBody(400, true)]
  for (const body of slow) body.add(150)
  expect(refusalOf(() => admission.enterBody(100, true))).toEqual({ retry_after_s: 1 })
  expect(refusalOf(() => slow[0]?.add(100))).toBeDefined()
  // Its room is free at once, for those that come with it.
  expect(admission.bodyBytes).toBe(300)
  slow[1]?.add(150)
  expect(refusalOf(() => slow[2]?.add(100))).toBeDefined()
  slow[1]?.add(150)
  // A result is taken all the same.
  const result = admission.enterBody(500, false)
  result.add(500)
  expect(refusalOf(() => admission.enterBody(200, false))).toBeDefined()
  result.leave()
  for (const body of slow) body.leave()
  expect(admission.bodyBytes).toBe(0)
  const alone = admission.enterBody(9_000, true)
  for (let part = 0; part < 9; part += 1) alone.add(1_000)
  alone.leave()
  // What arrives after the answer is nobody's any more.
  alone.add(1_000)
  expect(admission.bodyBytes).toBe(0)
})

test('[I-09] new work is refused once nobody is served in time for a while, and taken again as soon as somebody is', () => {
  const { admission, state, lines } = anAdmission({ jobBytesMax: Infinity })
  const enter = () => {
    const pass = admission.enter(1)
    pass.begin()
    return pass
  }
  const first = [enter(), enter(), enter()]
  state.now = 2_900
  // Three seconds without anybody served may be a hitch of the disk.
  first.push(enter())
  state.now = 3_100
  expect(refusalOf(enter)).toEqual({ retry_after_s: 2 })
  expect(refusalOf(enter)).toEqual({ retry_after_s: 2 })
  expect(lines).toEqual(['new work is refused'])
  for (const pass of first.slice(0, 3)) pass.leave()
  // The first in the row has waited for 200 ms only.
  const next = enter()
  first[3]?.leave()
  next.leave()
  state.now = 60_000
  // Nobody waits: there is no queue that could be old.
  enter().leave()
  enter()
})

test('[I-09] what waits for something else than the storage is no sign of overload', () => {
  const { admission, state } = anAdmission()
  // Its data is still being checked by the blueprint.
  admission.enter(1)
  state.now = 100_000
  expect(refusalOf(() => admission.enter(1))).toBeUndefined()
})

test('[I-09] with a wait of zero nobody is refused for waiting', () => {
  const { admission, state } = anAdmission({ waitMsMax: 0 })
  admission.enter(1).begin()
  state.now = 100_000
  expect(refusalOf(() => admission.enter(1))).toBeUndefined()
})

test('[I-09] a late event loop or a full heap refuses new work, and nothing else', () => {
  const { admission, state } = anAdmission()
  for (const name of ['isLate', 'isFull'] as const) {
    state[name] = true
    expect(refusalOf(() => admission.enter(1))).toEqual({ retry_after_s: 2 })
    expect(refusalOf(() => admission.enterBody(1, true))).toEqual({ retry_after_s: 2 })
    admission.enterBody(1, false).leave()
    state[name] = false
    admission.enter(1).leave()
  }
})

test('[I-09] the loop is late when it is so again and again, and no longer when it was in time once', () => {
  let now = 0
  const gauge = new LoopGauge(500, () => now)
  const beats = (...spansMs: readonly number[]): boolean => {
    for (const spanMs of spansMs) {
      now += spanMs
      gauge.beat()
    }
    return gauge.isLate
  }
  beats(50)
  expect(beats(50, 5_000, 60)).toBe(false)
  expect(beats(700, 700, 700)).toBe(false)
  expect(beats(700)).toBe(true)
  expect(beats(60)).toBe(false)
})

test('[C-10] the heap is full when it is so after V8 has cleared it, until there is room again', () => {
  let usedBytes = 90
  let now = 1_000
  const gauge = new HeapGauge(
    () => ({ usedBytes, limitBytes: 100 }),
    () => now,
  )
  // Nobody knows yet how much of it is in use.
  expect(gauge.isFull).toBe(false)
  gauge.cleared()
  expect(gauge.isFull).toBe(true)
  usedBytes = 80
  now += 200
  expect(gauge.isFull).toBe(true)
  usedBytes = 60
  expect(gauge.isFull).toBe(true)
  now += 200
  expect(gauge.isFull).toBe(false)
})

test('[C-10] bounds follow the heap', () => {
  const mb = 1_048_576
  const bytes = [64, 256, 1_024, 16_384].map((heap) => admissionBounds(1, heap * mb).jobBytesMax / mb)
  expect(bytes).toEqual([16, 32, 128, 256])
})
