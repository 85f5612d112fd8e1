import { expect, test } from 'vitest'
import { reportLines, shares } from './report.ts'
import type { Visit } from './report.ts'
import { runShowcase } from './showcase.ts'
import type { Assignment } from './workers.ts'

function firstTries(assignments: readonly Assignment[]): readonly Assignment[] {
  return assignments.filter(({ attempt }) => attempt === 1)
}

function statesOf(visits: readonly Visit[]): readonly string[] {
  return visits.map(({ state }) => state)
}

const RUN = ['plates', 'plates_made', 'print', 'printed', 'inspect', 'inspected', 'done']
test('[A-04, B-04, B-05, B-08, D-03, F-02, F-04, H-07] 05-showcase: two orders, and the temp gets no more work', async () => {
  const told: string[] = []
  const findings = await runShowcase((line) => told.push(line))
  const { poster, flyer, rackStopped, approval, scheduled, reputations, webhooks } = findings

  // Conditions, the status of its own, the child, the approval and both fan-outs: each order went its way.
  const careful = ['received', 'check', 'retouch', 'check', 'proof', 'approval', 'run', 'pack', 'delivered']
  expect(statesOf(poster.visits)).toEqual(careful)
  expect(statesOf(flyer.visits)).toEqual(['received', 'run', 'pack', 'delivered'])
  expect([poster.status, flyer.status]).toEqual(['finished', 'finished'])
  for (const { children } of [poster, flyer]) expect(statesOf(children['print_run']?.visits ?? [])).toEqual(RUN)
  const plates = ['cyan', 'magenta', 'yellow', 'black', 'gold']
  expect(poster.result).toEqual({
    parcel: 'parcel of 900',
    proof: 'proof of poster-sharp.pdf',
    run: { plates, sheets: 900, inspected: 8 },
  })
  expect(flyer.result).toEqual({ parcel: 'parcel of 90', proof: null, run: { plates, sheets: 90, inspected: 8 } })

  // A person decided, by a link that works once.
  expect(approval).toEqual({
    message: 'Shall we print 900 copies of "Summer festival"?',
    first: 200,
    second: 200,
  })

  // The child left the rack on an event, and the rack was told to stop.
  expect(statesOf(poster.children['proof_print']?.visits ?? [])).toEqual(['print', 'dry', 'ready'])
  expect(poster.children['proof_print']?.events).toEqual(['touch_dry'])
  expect(rackStopped).toBe('cancelled')

  // default: the warm one, though it is dearer. cheapest: the other one.
  expect(shares(poster.assignments, 'shop.check')).toEqual({ lena: 2 })
  expect(shares(poster.assignments, 'shop.retouch')).toEqual({ otto: 1 })
  // least_connections: every order begins with the cheaper of two idle presses.
  for (const { assignments } of [poster, flyer]) {
    expect(shares(assignments, 'shop.plate')).toEqual({ 'press-east': 3, 'press-west': 2 })
  }
  // round_robin: the second order goes on where the first one ended.
  expect(shares(poster.assignments, 'shop.print')).toEqual({ 'press-east': 2, 'press-west': 1 })
  expect(shares(flyer.assignments, 'shop.print')).toEqual({ 'press-east': 1, 'press-west': 2 })

  // best_value: tim while he has a name, and ines when he has lost it. What he botched was done again by ines.
  expect(shares(firstTries(poster.assignments), 'shop.inspect')).toEqual({ tim: 8 })
  expect(shares(poster.assignments, 'shop.inspect')).toEqual({ tim: 8, ines: 4 })
  expect(shares(flyer.assignments, 'shop.inspect')).toEqual({ ines: 8 })
  expect(reputations.before).toEqual({ tim: 1, ines: 1 })
  expect(reputations.after.tim).toBeLessThan(0.8)
  expect(reputations.after.ines).toBe(1)

  // The schedule that is due started one job, and the other one none.
  const result = { store: 'cellar', paper: 12_000 }
  expect(scheduled).toEqual([{ schedule: 'hourly_stock_count', status: 'finished', result }])

  // What the receiver believes.
  expect(webhooks.verified.map(({ event }) => event)).toEqual([
    'job_finished',
    'approval_requested',
    'job_finished',
    'job_finished',
  ])
  expect(webhooks.verified.slice(1).map(({ jobId }) => jobId)).toEqual([poster.id, poster.id, flyer.id])
  expect(webhooks.refused).toBe(1)

  // And all of it is told.
  expect(told.filter((line) => line.includes('spills coffee'))).toHaveLength(4)
  const report = reportLines(findings)
  expect(report.find((line) => line.startsWith('  tim '))).toMatch(/ 8 +0$/)
  expect(report.find((line) => line.startsWith('  ines '))).toMatch(/ 0 \+ 4 again +8$/)
  expect(report).toContain('  verified the signatures of 4: job_finished ×3, approval_requested ×1')
})
