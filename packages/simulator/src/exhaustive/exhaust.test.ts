import { expect, test } from 'vitest'
import { everyPair, everySingle, subjects } from './exhaust.ts'
import type { Subject } from './exhaust.ts'

/** Everything except the faults is random, and differs wherever `CI_SEED_BASE` differs. A failure reports its seed. */
const SEED = Number(process.env['CI_SEED_BASE'] ?? 1)

function named(list: readonly Subject[]): [string, Subject][] {
  return list.map((subject) => [subject.name, subject])
}

test.each(named(subjects()))(
  '[C-05] [C-09] a fault at any single storage call loses nothing: %s',
  async (_name, subject) => {
    const report = await everySingle(subject, SEED)
    expect(report.failures).toEqual([])
    expect(report.runs).toBe(4 * report.calls)
    expect(report.calls).toBeGreaterThan(20)
  },
  600_000,
)

/** Small enough that all pairs fit into every run; the pairs of the others run with `--exhaustive --pairs`. */
const PAIRED = new Set(['linear', 'parent', 'approval', 'approval-expires'])

test.each(named(subjects().filter(({ name }) => PAIRED.has(name))))(
  '[C-05] [C-09] no two faults at any two calls that change something lose anything: %s',
  async (_name, subject) => {
    const report = await everyPair(subject, SEED)
    expect(report.failures).toEqual([])
    expect(report.runs).toBeGreaterThan(500)
  },
  600_000,
)
