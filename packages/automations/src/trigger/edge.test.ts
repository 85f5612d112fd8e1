import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CLEAR, observe } from './edge.ts'
import type { EdgePolicy, EdgeState } from './edge.ts'

const NONE: EdgePolicy = { forMs: 0, cooldownMs: 0 }

/** The outcomes of a row of observations, each `[at, holds, isOver]`. */
function outcomes(policy: EdgePolicy, row: readonly [number, boolean | undefined, boolean?][]): readonly string[] {
  let state: EdgeState = CLEAR
  return row.map(([at, holds, isOver = holds === false]) => {
    const step = observe(state, { at, holds, isOver }, policy)
    ;({ state } = step)
    return step.outcome
  })
}

describe('[K-06] conditions are edge-triggered', () => {
  test('they fire once when they become true, and again only after they were false', () => {
    expect(
      outcomes(NONE, [
        [1, true],
        [2, true],
        [3, false],
        [4, true],
      ]),
    ).toEqual(['fires', 'quiet', 'quiet', 'fires'])
  })

  test('`for`: they fire after they held so long without a break', () => {
    const policy = { forMs: 10, cooldownMs: 0 }
    expect(
      outcomes(policy, [
        [0, true],
        [5, false],
        [6, true],
        [15, true],
        [16, true],
        [17, true],
      ]),
    ).toEqual(['quiet', 'quiet', 'quiet', 'quiet', 'fires', 'quiet'])
  })

  test('hysteresis: between the two thresholds nothing changes', () => {
    expect(
      outcomes(NONE, [
        [1, true, false],
        [2, false, false],
        [3, true, false],
        [4, false, true],
        [5, true, false],
      ]),
    ).toEqual(['fires', 'quiet', 'quiet', 'quiet', 'fires'])
  })

  test('cooldown: a firing that comes too soon is told and does not run', () => {
    const policy = { forMs: 0, cooldownMs: 100 }
    expect(
      outcomes(policy, [
        [0, true],
        [10, false],
        [20, true],
        [30, false],
        [100, true],
      ]),
    ).toEqual(['fires', 'quiet', 'cooldown', 'quiet', 'fires'])
  })

  test('what could not be evaluated changes nothing', () => {
    expect(
      outcomes(NONE, [
        [5, true],
        [6, undefined],
        [7, true],
      ]),
    ).toEqual(['fires', 'quiet', 'quiet'])
  })

  // Found by the simulator (automations, seed 101): such a report was acknowledged and then ignored.
  test('an observation of an instance whose clock is behind counts like any other', () => {
    expect(
      outcomes(NONE, [
        [5, true],
        [4, false],
        [7, true],
      ]),
    ).toEqual(['fires', 'quiet', 'fires'])
  })

  test('between two firings the condition was over at least once, and the cooldown has passed', () => {
    const seen = fc.record({ step: fc.integer({ min: 1, max: 50 }), holds: fc.boolean() })
    fc.assert(
      fc.property(
        fc.array(seen, { maxLength: 60 }),
        fc.nat({ max: 60 }),
        fc.nat({ max: 60 }),
        (row, forMs, cooldownMs) => {
          let [state, at, wasOver, firedAt] = [CLEAR, 0, true, Number.NEGATIVE_INFINITY]
          for (const { step, holds } of row) {
            at += step
            const next = observe(state, { at, holds, isOver: !holds }, { forMs, cooldownMs })
            ;({ state } = next)
            if (!holds) wasOver = true
            if (next.outcome !== 'fires') continue
            expect(wasOver && at - firedAt >= cooldownMs).toBe(true)
            ;[wasOver, firedAt] = [false, at]
          }
        },
      ),
    )
  })
})
