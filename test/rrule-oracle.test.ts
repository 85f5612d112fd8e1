import { expect, test } from 'vitest'
import { compareWithDateutil } from './rrule-oracle/compare.ts'
import { ensure } from './system/debian-packages.ts'

const RULES = 2_000
const missing = ensure(['python3-dateutil'])

test(`[K-03] dateutil agrees with us on ${RULES} random rules in 20 zones`, { timeout: 600_000 }, async (context) => {
  context.skip(missing !== undefined, missing)
  // A fixed seed, so that a failure is caused by a change. `npm run check:rrule` uses others.
  const seed = 5545
  const { compared, occurrences, differences } = await compareWithDateutil(seed, RULES)
  console.log(`Seed ${seed}: ${compared} rules with ${occurrences} occurrences compared.`)
  expect(differences).toEqual([])
  expect(compared).toBeGreaterThan(RULES * 0.8)
  expect(occurrences).toBeGreaterThan(RULES * 5)
})
